#include <sotto/base/workers.h>

#include <string>

#include <sotto/base/error.h>
#include <sotto/base/start_threads.h>

namespace sotto {

Workers::Workers(int threads) {
  if (threads < 1 || threads > kMost) {
    refuse("threads", std::to_string(threads), "1 to " + std::to_string(kMost) + " would do");
  }
  helpers_ = start_threads(
      static_cast<std::size_t>(threads) - 1, "parallel work", [this](std::size_t) { serve(); },
      [this] { end(); });
}

Workers::~Workers() { end(); }

void Workers::end() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  for (std::thread& helper : helpers_) {
    helper.join();
  }
}

void Workers::run(std::size_t parts, const Part& part) {
  if (helpers_.empty() || parts <= 1 || busy_.test_and_set(std::memory_order_acquire)) {
    for (std::size_t k = 0; k < parts; ++k) {
      part(k);
    }
    return;
  }
  Job job{.part = part, .parts = parts};
  {
    std::unique_lock lock(mutex_);
    job_ = &job;
    wake_.notify_all();
    work(lock, job);
    done_.wait(lock, [&job] { return job.running == 0; });
    job_ = nullptr;
  }
  busy_.clear(std::memory_order_release);
  if (job.error) {
    std::rethrow_exception(job.error);
  }
}

void Workers::work(std::unique_lock<std::mutex>& lock, Job& job) {
  while (job.next < job.parts) {
    const std::size_t k = job.next++;
    ++job.running;
    lock.unlock();
    std::exception_ptr error;
    try {
      job.part(k);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && (!job.error || k < job.failed)) {
      job.error = error;
      job.failed = k;
      job.next = job.parts;
    }
    if (--job.running == 0 && job.next == job.parts) {
      done_.notify_one();
    }
  }
}

void Workers::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return ending_ || (job_ != nullptr && job_->next < job_->parts); });
    if (ending_) {
      return;
    }
    work(lock, *job_);
  }
}

}  // namespace sotto
