#include <sotto/sites/nodes/state/state_thread.h>

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <utility>

namespace sotto {
namespace {

/// `meanwhile` is called this often.
constexpr std::chrono::milliseconds kSettleEvery{10};

/// No step waits for more memory than this that is new to the process, in bytes.
constexpr std::size_t kQuick = std::size_t{16} << 20;

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

void StateThread::make_room_at_once(std::vector<std::byte>& memory, std::size_t bytes) {
  if (memory.capacity() < bytes) {
    memory = std::vector<std::byte>();  // before there is more
    memory.resize(bytes + bytes / 16);  // later states may be a little longer
  }
}

bool StateThread::make_room(std::vector<std::byte>& memory, std::size_t bytes) {
  if (memory.capacity() >= bytes) {
    return true;
  }
  if (bytes <= kQuick) {
    make_room_at_once(memory, bytes);
    return true;
  }
  write([&memory, bytes, before = written_] {
    make_room_at_once(memory, bytes);
    return before;
  });
  return false;
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
