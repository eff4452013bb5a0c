#include <sotto/base/start_threads.h>

#include <atomic>
#include <future>
#include <limits>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/system_limit.h>

namespace sotto {
namespace {

constexpr auto kPlenty = std::numeric_limits<std::ptrdiff_t>::max();

/// How many more threads tests grant.
std::atomic<std::ptrdiff_t> granted = kPlenty;

void take_grant() {
  if (granted != kPlenty && granted-- <= 0) {
    granted = 0;
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
  }
}

std::string listed(const std::string& limit) { return limit.empty() ? limit : limit + ", "; }

[[noreturn]] void refuse_threads(std::size_t started, std::size_t wanted, std::string_view purpose,
                                 const std::error_code& code) {
  throw Error(fmt::format(
      "threads for {}: the system gave {} of {} ({}); likely limits are {}{}or the cgroup's "
      "pids.max; use fewer nodes or threads, or raise the limit",
      purpose, started, wanted, code.message(),
      listed(limit_text(RLIMIT_NPROC, "RLIMIT_NPROC", 'u')),
      listed(limit_text(RLIMIT_AS, "RLIMIT_AS", 'v', 1024))));
}

}  // namespace

std::vector<std::thread> start_threads(std::size_t count, std::string_view purpose,
                                       const std::function<void(std::size_t)>& body,
                                       const std::function<void()>& end) {
  std::vector<std::thread> threads;
  threads.reserve(count);
  const auto give_back = [&] {
    end();
    for (std::thread& thread : threads) {
      thread.join();
    }
  };
  try {
    for (std::size_t k = 0; k < count; ++k) {
      take_grant();
      threads.emplace_back(body, k);
    }
  } catch (const std::system_error& error) {
    give_back();
    refuse_threads(threads.size(), count, purpose, error.code());
  } catch (...) {  // memory ran out
    give_back();
    throw;
  }
  return threads;
}

std::thread start_thread(std::string_view purpose, const std::function<void()>& body) {
  try {
    auto threads = start_threads(
        1, purpose, [body](std::size_t) { body(); }, [] {});
    return std::move(threads.front());
  } catch (const Error& error) {
    throw Shortage(error.what());
  }
}

void run_side_by_side(std::size_t count, std::string_view purpose,
                      const std::function<void(std::size_t)>& body) {
  std::promise<bool> gate;
  const std::shared_future<bool> opened = gate.get_future().share();
  auto threads = start_threads(
      count, purpose,
      [&body, opened](std::size_t k) {
        if (opened.get()) {
          body(k);
        }
      },
      [&gate] { gate.set_value(false); });
  gate.set_value(true);
  for (std::thread& thread : threads) {
    thread.join();
  }
}

ThreadShortage::ThreadShortage(std::size_t starts) {
  granted = static_cast<std::ptrdiff_t>(starts);
}

ThreadShortage::~ThreadShortage() { granted = kPlenty; }

}  // namespace sotto
