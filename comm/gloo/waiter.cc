#include "waiter.h"

#include <chrono>
#include <exception>
#include <utility>

#include <sotto/base/start_threads.h>

namespace sotto::internal {
namespace {

/// Gloo takes "no limit" for the context's limit, so a year stands for it.
constexpr auto kForever = std::chrono::hours(24 * 365);

}  // namespace

std::string plain_message(const std::exception& failure) {
  const std::string message = failure.what();
  const auto end = message.starts_with('[') ? message.find("] ") : std::string::npos;
  return end == std::string::npos ? message : message.substr(end + 2);
}

Report report_of(Rank peer, const Operation& operation) {
  const auto& buffer = *operation.buffer;
  return {.peer = peer,
          .use = operation.use,
          .tag = operation.tag,
          .memory = {static_cast<const std::byte*>(buffer.ptr), buffer.size},
          .failure = {}};
}

void Reports::push(Report report) {
  {
    const std::lock_guard lock(mutex_);
    reports_.push_back(std::move(report));
  }
  pushed_.notify_one();
}

std::optional<Report> Reports::pop(Deadline deadline) {
  std::unique_lock lock(mutex_);
  wait_until(pushed_, lock, deadline, [&] { return !reports_.empty() || interrupted_; });
  if (reports_.empty()) {
    return std::nullopt;
  }
  std::optional<Report> report(std::move(reports_.front()));
  reports_.pop_front();
  return report;
}

void Reports::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
  }
  pushed_.notify_one();
}

bool Reports::take_interruption() {
  const std::lock_guard lock(mutex_);
  return std::exchange(interrupted_, false);
}

Waiter::Waiter(Rank peer, Reports& reports)
    : peer_(peer), reports_(reports), thread_(start_thread("a neighbour", [this] { run(); })) {}

Waiter::~Waiter() { stop(); }

void Waiter::add(Operation operation) {
  {
    const std::lock_guard lock(mutex_);
    operations_.push_back(std::move(operation));
  }
  changed_.notify_one();
}

void Waiter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (!operations_.empty()) {
      operations_.front().buffer->abortWaitSend();
      operations_.front().buffer->abortWaitRecv();
    }
  }
  changed_.notify_one();
  if (thread_.joinable()) {
    thread_.join();
  }
}

void Waiter::run() {
  for (;;) {
    Operation* next = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !operations_.empty(); });
      if (stopping_) {
        return;
      }
      next = &operations_.front();  // stays in place until this thread removes it
    }
    auto& buffer = *next->buffer;
    Report report = report_of(peer_, *next);
    try {
      const bool ended = next->use == Use::send ? buffer.waitSend(nullptr, kForever)
                                                : buffer.waitRecv(nullptr, kForever);
      if (!ended) {
        return;  // stopping
      }
    } catch (const std::exception& failure) {
      report.failure = plain_message(failure);
    }
    {
      const std::lock_guard lock(mutex_);
      operations_.pop_front();
    }
    reports_.push(std::move(report));
  }
}

}  // namespace sotto::internal
