// A TCPStore of PyTorch's made of bytes alone: each generation's requests, and what each does with
// a key that is not there and with a value that is too long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/bytes.h>

#include "raw_server.h"

namespace sotto::test {

/// The generations of PyTorch's server.
enum class TorchServer {
  until_2_0,
  of_2_1,
  since_2_2,        ///< its older server (use_libuv=False)
  since_2_2_libuv,  ///< its newer one
};

class FakeTorchStore {
 public:
  explicit FakeTorchStore(TorchServer kind)
      : kind_(kind), server_([this](const RawServer::Client& client) { serve(client); }) {}

  int port() const { return server_.port(); }
  std::map<std::string, std::string> values() {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  /// Closes the line at the request that comes after so many others, once.
  void close_after(int requests) { until_close_ = requests; }
  /// Puts a value where a client may read it.
  void put(const std::string& key, const std::string& value) {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
  }

 private:
  using Client = RawServer::Client;
  static constexpr std::uint64_t kMostOfLibuv = std::uint64_t{8} << 20U;

  bool greets() const { return kind_ >= TorchServer::since_2_2; }

  void serve(const Client& client) {
    if (greets()) {
      const auto validate = client.number<std::uint8_t>();
      if (validate != 0 || client.number<std::uint32_t>() != 0x3C85F7CE) {
        return;
      }
    }
    while (const auto number = client.number<std::uint8_t>()) {
      if (until_close_ >= 0 && until_close_-- == 0) {
        return;
      }
      if (!answer(client, *number - (greets() ? 1 : 0))) {
        return;
      }
    }
  }
  bool answer(const Client& client, int request) {
    constexpr int kSet = 0;
    constexpr int kClaim = 1;
    constexpr int kGet = 2;
    constexpr int kCheck = 4;
    constexpr int kCount = 6;
    const bool watches = kind_ == TorchServer::until_2_0;
    if (request == kSet) {
      const auto key = client.run();
      const bool libuv = kind_ == TorchServer::since_2_2_libuv;
      const auto value = key ? client.run(libuv ? kMostOfLibuv : ~std::uint64_t{0}) : std::nullopt;
      if (key && value) {
        put(*key, *value);
      }
      return key && value;
    }
    if (request == kClaim) {
      return compare(client);
    }
    if (request == kCheck) {
      const auto count = client.number<std::uint64_t>();
      const auto key = client.run();
      if (count == 1 && key) {
        client.write_number(static_cast<std::uint8_t>(values().contains(*key) ? 0 : 1));
      }
      return count == 1 && key;
    }
    if (request == kCount) {
      client.write_number(static_cast<std::int64_t>(values().size()));
      return true;
    }
    if (request != kGet && request != 7 && !(watches && request == 8)) {
      return false;
    }
    const auto key = client.run();
    return key && answer_key(client, request, *key, watches);
  }
  /// Puts a value where the one that is expected is there, an empty one where none is.
  bool compare(const Client& client) {
    const auto key = client.run();
    const auto expected = key ? client.run() : std::nullopt;
    const auto value = expected ? client.run() : std::nullopt;
    if (!value) {
      return false;
    }
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(*key);
    if (found == values_.end() && expected->empty()) {
      values_[*key] = *value;
    } else if (found != values_.end() && found->second == *expected) {
      found->second = *value;
    }
    const auto now = values_.find(*key);
    client.write_run(now == values_.end() ? *expected : now->second);
    return true;
  }
  bool answer_key(const Client& client, int request, const std::string& key, bool watches) {
    if (request == 2) {
      const auto all = values();
      const auto found = all.find(key);
      if (found == all.end() && kind_ != TorchServer::since_2_2_libuv) {
        return false;
      }
      client.write_run(found == all.end() ? std::string() : found->second);
    } else if (watches && request == 7) {
      client.write_number(std::uint8_t{3});
    } else {
      const std::lock_guard lock(mutex_);
      client.write_number(static_cast<std::int64_t>(values_.erase(key)));
    }
    return true;
  }

  const TorchServer kind_;
  std::atomic<int> until_close_{-1};  ///< below 0: it stays open
  std::mutex mutex_;
  std::map<std::string, std::string> values_;
  RawServer server_;  // the last: its threads use the others
};

}  // namespace sotto::test
