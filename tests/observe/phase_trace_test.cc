// A trace whose file others keep, or that is gone: nobody waits, and it is told.
#include <sotto/observe/phase_trace.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "observe/observed.h"
#include "support/scratch.h"

namespace sotto::test::phase_trace_test {

namespace {

/// The lock on a file, as another process has it.
class Held {
 public:
  explicit Held(const std::string& path) : descriptor_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    REQUIRE(::flock(descriptor_, LOCK_EX | LOCK_NB) == 0);
  }
  ~Held() { ::close(descriptor_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  int descriptor_;
};

struct Traced {
  explicit Traced(const std::string& path)
      : trace(path, {}, 0, [this](const sotto::SettingText& message) {
          const std::string text = message.text();
          told.push_back(text);
          trace.warning(text);  // as a run's observers do
        }) {}

  void phases(std::size_t count) {
    const auto now = PhaseSpan::Time::clock::now();
    for (std::size_t k = 0; k < count; ++k) {
      trace.phase({.phase = RunPhase::gradient, .round = k, .from = now, .until = now});
    }
  }

  std::vector<std::string> told;
  sotto::PhaseTrace trace;
};

std::size_t gradients_in(const std::string& path) {
  std::size_t count = 0;
  const auto trace = nlohmann::json::parse(text_of_file(path));
  for (const auto& event : trace.at("traceEvents")) {
    count += event.at("name") == "gradient" ? 1U : 0U;
  }
  return count;
}

}  // namespace

TEST_CASE("a trace that nobody wants to keep is no trouble") {
  Traced traced("/dev/null");
  traced.phases(3000);  // several buffers
  traced.trace.round_done(1);
  traced.trace.node_ended(0);
  traced.trace.ended({});
  CHECK(traced.told.empty());
}

TEST_CASE("a trace whose file another process keeps for a while loses nothing") {
  const Scratch scratch;
  const auto path = (scratch.path() / "trace.json").string();
  Traced traced(path);
  {
    const Held held(path);
    traced.phases(3000);  // several buffers
    CHECK(gradients_in(path) == 0);
  }
  traced.phases(10);
  traced.trace.round_done(1);
  traced.trace.node_ended(0);
  traced.trace.ended({});
  CHECK(traced.told.empty());
  CHECK(gradients_in(path) == 3010);
}

TEST_CASE("a trace whose file another process keeps ends and says so, and nobody waits for it") {
  const Scratch scratch;
  const auto path = (scratch.path() / "trace.json").string();
  Traced traced(path);
  const Held held(path);
  traced.phases(sotto::PhaseTrace::kMostHeld / 40);  // more bytes than that each
  CHECK(traced.told.empty());
  traced.trace.round_done(1);
  REQUIRE(traced.told.size() == 1);
  CHECK(traced.told[0] ==
        "trace: " + path + ": another process keeps it locked; the run goes on without");
  traced.phases(10);
  traced.trace.round_done(2);
  traced.trace.node_ended(0);
  traced.trace.ended({});
  CHECK(traced.told.size() == 1);
  CHECK(gradients_in(path) == 0);
}

TEST_CASE("what is of the whole run stands with the one node that a trace of its own has") {
  const Scratch scratch;
  const auto path = (scratch.path() / "trace.json").string();
  sotto::PhaseTrace trace(path, {}, 3, [](const sotto::SettingText&) {});
  const auto now = PhaseSpan::Time::clock::now();
  trace.warning("a \"word\"");
  trace.phase({.node = 3, .phase = RunPhase::round, .from = now, .until = now});
  trace.ended({});
  const auto whole = nlohmann::json::parse(text_of_file(path));
  check_trace(whole);
  std::vector<std::string> instants;
  for (const auto& event : whole.at("traceEvents")) {
    CHECK(event.at("pid") == 1003);
    if (event.at("ph") == "i") {
      CHECK(event.at("s") == "t");
      instants.push_back(event.at("name"));
    }
  }
  CHECK(instants == std::vector<std::string>{"begin", "a \"word\""});
}

TEST_CASE("a node in a process of its own says that it cannot open the trace") {
  const Scratch scratch;
  const auto path = (scratch.path() / "trace.json").string();
  Traced traced(path);
  std::filesystem::remove(path);
  const pid_t child = ::fork();
  if (child == 0) {
    traced.phases(10);
    traced.trace.node_ended(0);
    ::_exit(traced.told.size() == 1 && traced.told[0].find("No such file") != std::string::npos
                ? 0
                : 1);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a node that has a trace of its own says that it is lost") {
  std::vector<std::string> told;
  const Scratch scratch;
  const auto path = (scratch.path() / "trace.json").string();
  PhaseTrace trace(path, {}, 3, [&](const SettingText& text) { told.push_back(text.text()); });
  const Held held(path);
  const auto now = PhaseSpan::Time::clock::now();
  for (std::size_t k = 0; k < PhaseTrace::kMostHeld / 40; ++k) {
    trace.phase({.node = 3, .phase = RunPhase::gradient, .round = k, .from = now, .until = now});
  }
  trace.node_ended(3);
  CHECK(told.size() == 1);
}

}  // namespace sotto::test::phase_trace_test
