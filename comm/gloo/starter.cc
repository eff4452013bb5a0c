#include "starter.h"

#include <sys/epoll.h>

#include <chrono>
#include <exception>
#include <utility>

#include <sotto/base/check.h>

namespace sotto::internal {
namespace {

constexpr std::chrono::seconds kFlushPatience{1};

bool sends(Use use) { return use == Use::send || use == Use::notice; }

}  // namespace

Starter::Starter(Reports& reports) : reports_(reports) {}

Starter::~Starter() {
  check(device_ == nullptr, "what starts operations is detached before it goes");
}

void Starter::attach(std::shared_ptr<gloo::transport::tcp::Device> device) {
  device->registerDescriptor(wakeup_.descriptor(), EPOLLIN, this);
  device_ = std::move(device);
}

void Starter::flush() {
  std::unique_lock lock(mutex_);
  started_.wait_for(lock, kFlushPatience, [this] { return due_.empty() && !starting_; });
}

void Starter::detach() {
  flush();
  device_->unregisterDescriptor(wakeup_.descriptor(),
                                this);  // returns once it handles nothing any more
  device_.reset();
  const std::lock_guard lock(
      mutex_);  // after all that it handled, also for tools that cannot see why
}

void Starter::add(Start start) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = due_.empty();
    due_.push_back(std::move(start));
  }
  if (first) {
    wakeup_.signal();
  }
}

void Starter::handleEvents(int /*events*/) {
  std::vector<Start> starts;
  {
    const std::lock_guard lock(mutex_);
    wakeup_.clear();
    starts.swap(due_);
    starting_ = true;
  }
  for (Start& start : starts) {
    run(start);
  }
  const std::lock_guard lock(mutex_);
  starting_ = false;
  started_.notify_all();
}

void Starter::run(Start& start) {
  auto& buffer = *start.operation.buffer;
  Report report = report_of(start.peer, start.operation);
  try {
    if (sends(start.operation.use)) {
      buffer.send(start.peer, start.slot);
    } else {
      buffer.recv(start.peer, start.slot);
    }
    if (start.waiter != nullptr) {
      start.waiter->add(std::move(start.operation));
    }
  } catch (const std::exception& failure) {
    report.failure = plain_message(failure);
    reports_.push(std::move(report));
  }
}

}  // namespace sotto::internal
