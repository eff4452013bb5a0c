#include "phase_trace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/compile.h>
#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/unix_time.h>

#include "trace_event.h"

namespace sotto::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kEnd = "\n]}\n";
constexpr std::size_t kBuffer = std::size_t{64} << 10U;
constexpr auto kLongestHeld = 1s;
constexpr int kTrainingThread = 1;
constexpr int kCommunicationThread = 2;

std::uint64_t process_of(Rank node) { return static_cast<std::uint64_t>(node) + 1; }

std::string name_event(const char* what, const TracePlace& place, const std::string& name) {
  return trace_event("M", place, fmt::format(R"("name":"{}","args":{{"name":"{}"}})", what, name));
}

bool write_at(int descriptor, std::string_view text, off_t at) {
  while (!text.empty()) {
    const auto written = ::pwrite(descriptor, text.data(), text.size(), at);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return false;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
    at += written;
  }
  return true;
}

}  // namespace

PhaseTrace::PhaseTrace(std::string path, const Json& config)
    : path_(std::move(path)), begin_(PhaseSpan::Time::clock::now()), flushed_(begin_) {
  open(O_CREAT | O_TRUNC);
  if (descriptor_ < 0) {
    refuse("--trace", path_, fmt::format("it cannot be written: {}", std::strerror(errno)));
  }
  const Json about = {{"sotto", SOTTO_VERSION}, {"begun_at", unix_time()}, {"config", config}};
  const std::string head =
      fmt::format("{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\n\"traceEvents\":[\n{}",
                  about.dump(-1, ' ', false, Json::error_handler_t::replace),
                  trace_event("i", {}, R"("s":"g","cat":"run","name":"begin")"));
  if (!write_at(descriptor_, head + std::string(kEnd), 0)) {
    refuse("--trace", path_, fmt::format("it cannot be written: {}", std::strerror(errno)));
  }
}

PhaseTrace::~PhaseTrace() {
  flush();
  ::close(descriptor_);
}

void PhaseTrace::open(int flags) {
  constexpr int kMode = 0666;
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CLOEXEC | flags, kMode);
  opener_ = ::getpid();
}

std::int64_t PhaseTrace::since_begin(PhaseSpan::Time time) const {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::max(time, begin_) - begin_)
      .count();
}

void PhaseTrace::name_node(Rank node) {
  if (!named_.insert(node).second) {
    return;
  }
  const std::uint64_t process = process_of(node);
  add(name_event("process_name", {process, kTrainingThread}, fmt::format("node {}", node)));
  add(name_event("thread_name", {process, kTrainingThread}, "training"));
  add(name_event("thread_name", {process, kCommunicationThread}, "communication"));
}

void PhaseTrace::add(const std::string& event) {
  events_ += ",\n";
  events_ += event;
}

void PhaseTrace::phase(const PhaseSpan& span) {
  const std::lock_guard lock(mutex_);
  if (full_) {
    return;
  }
  name_node(span.node);
  const std::int64_t from = since_begin(span.from);
  const std::int64_t until = since_begin(span.until);
  const TracePlace place{process_of(span.node),
                         span.carrier ? kCommunicationThread : kTrainingThread, from};
  if (span.phase == RunPhase::wire) {
    const std::uint64_t id = process_of(span.node) << 32U | ++exchanges_;
    append_overlapping_event(place, until, "wire", id,
                             fmt::format(FMT_COMPILE("\"round\":{},\"bucket\":{},\"bytes\":{}"),
                                         span.round, span.bucket, span.bytes),
                             events_);
  } else {
    append_phase_event(place, until - from, run_phase_name(span.phase), span.round, events_);
  }
  if (events_.size() > kBuffer || span.until - flushed_ > kLongestHeld) {
    flushed_ = span.until;
    flush();
  }
}

void PhaseTrace::warning(const std::string& text) {
  const std::lock_guard lock(mutex_);
  add(trace_event("i", {process_of(0), kTrainingThread, since_begin(PhaseSpan::Time::clock::now())},
                  fmt::format(R"("s":"g","cat":"warning","name":{})",
                              Json(text).dump(-1, ' ', false, Json::error_handler_t::replace))));
}

void PhaseTrace::node_ended(Rank /*node*/) {
  const std::lock_guard lock(mutex_);
  flush();
}

void PhaseTrace::flush() {
  if (events_.empty() || full_) {
    return;
  }
  if (opener_ != ::getpid()) {
    open(0);
  }
  if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX) != 0) {
    full_ = true;
    return;
  }
  const off_t size = ::lseek(descriptor_, 0, SEEK_END);
  const off_t at = size - static_cast<off_t>(kEnd.size());
  full_ = static_cast<std::size_t>(size) + events_.size() > kMostBytes;
  if (full_) {
    fmt::print(
        stderr,
        "sotto: warning: --trace: {} has reached its limit; the rest of the run is left out\n",
        path_);
  } else if (!write_at(descriptor_, events_ + std::string(kEnd), at)) {
    // What is there in part must not make the rest unreadable.
    full_ = true;
    [[maybe_unused]] const bool cut =
        ::ftruncate(descriptor_, at) == 0 && write_at(descriptor_, kEnd, at);
    fmt::print(stderr, "sotto: warning: --trace: {}: {}; the run goes on without\n", path_,
               std::strerror(errno));
  }
  ::flock(descriptor_, LOCK_UN);
  events_.clear();
}

}  // namespace sotto::cli
