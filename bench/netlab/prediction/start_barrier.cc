#include "start_barrier.h"

#include <memory>
#include <string_view>
#include <utility>

#include <sotto/comm/run_keys.h>
#include <sotto/comm/stores.h>

namespace sotto::netlab {
namespace {

/// Between two looks whether anybody still wants to know.
constexpr std::chrono::milliseconds kGunLook{200};

}  // namespace

StartBarrier::StartBarrier(const EmulatedNetwork& network, std::string host, int port)
    : network_(network), thread_([this, host = std::move(host), port] { listen(host, port); }) {}

StartBarrier::~StartBarrier() {
  stopping_ = true;
  thread_.join();
}

std::optional<StartBarrier::Clock::time_point> StartBarrier::passed() const {
  const Clock::rep at = passed_;
  return at == 0 ? std::nullopt : std::optional(Clock::time_point(Clock::duration(at)));
}

void StartBarrier::listen(const std::string& host, int port) {
  network_.at(0).inside([&] {
    const std::shared_ptr<Store> store = make_tcp_store(host, port, false, {.insecure = true});
    const auto await = [&](std::string_view key) -> Result<std::vector<std::byte>> {
      while (!stopping_) {
        if (auto value = store->get(key, Deadline::after(kGunLook)); value.ok()) {
          return value;
        }
      }
      return Status(Fault::deadline, "nobody wants to know any more");
    };
    const auto session = await(kSessionKey);
    if (!session.ok()) {
      return;
    }
    const auto mark = session_mark(*session);
    if (mark && await(key_in_session(*mark, barrier_key(kBeginBarrier))).ok()) {
      passed_ = Clock::now().time_since_epoch().count();
    }
  });
}

}  // namespace sotto::netlab
