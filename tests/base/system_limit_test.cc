// Limits of the system are named where they are met.
#include <sotto/base/system_limit.h>

#include <sys/resource.h>

#include <string>

#include <doctest/doctest.h>

#include <sotto/base/start_threads.h>

namespace sotto::test::system_limit_test {

namespace {

/// A lower limit of open files, until it is destroyed.
class OpenFileLimit {
 public:
  explicit OpenFileLimit(rlim_t most) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit lower{.rlim_cur = most, .rlim_max = before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }
  ~OpenFileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  OpenFileLimit(const OpenFileLimit&) = delete;
  OpenFileLimit& operator=(const OpenFileLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("files that the system does not give are counted, and the limit is named") {
  require_open_files(50, "sockets");
  std::string text;
  {
    const OpenFileLimit limit(20);
    try {
      require_open_files(50, "sockets");
    } catch (const Shortage& shortage) {
      text = shortage.what();
    }
    CHECK(limit_text(RLIMIT_NOFILE, "RLIMIT_NOFILE", 'n') == "RLIMIT_NOFILE (`ulimit -n`, 20)");
  }
  CAPTURE(text);
  CHECK(text.starts_with("files for sockets: the system gave "));
  CHECK(text.find(" of at least 50 (") != std::string::npos);
  CHECK(text.find("`ulimit -n`, 20") != std::string::npos);
  require_open_files(50, "sockets");  // all were given back
}

}  // namespace sotto::test::system_limit_test
