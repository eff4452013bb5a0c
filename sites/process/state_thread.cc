#include <sotto/sites/process/state_thread.h>

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <utility>

namespace sotto {
namespace {

/// `meanwhile` is called this often.
constexpr std::chrono::milliseconds kSettleEvery{10};

/// What this thread computes waits for other threads that want the core. A refusal changes nothing
/// but times.
void yield_to_training() {
  constexpr int kNice = 10;
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
}

}  // namespace

bool StateThread::idle() {
  working_ = working_ && !thread_->wait({});
  return !working_;
}

void StateThread::write(std::function<Status()> job) {
  if (!thread_) {
    thread_.emplace("what is written");
  }
  working_ = true;
  thread_->begin([this, job = std::move(job)] {
    yield_to_training();
    try {
      written_ = job();
    } catch (const std::exception& exception) {
      written_ = Status(Fault::io, exception.what());
    }
  });
}

void StateThread::prepare(const std::function<void()>& job) {
  write([job, before = written_] {
    job();
    return before;
  });
}

void StateThread::settle(const std::function<void()>& meanwhile) {
  while (working_) {
    working_ = !thread_->wait(kSettleEvery);
    if (working_ && meanwhile) {
      meanwhile();
    }
  }
}

}  // namespace sotto
