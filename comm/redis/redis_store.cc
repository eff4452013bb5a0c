// A store on a Redis server. Redis has no wait for a key, so a get looks again and again. What
// answers may be no Redis server, or one that means harm: of a reply no more is read than was asked
// for.
#include <hiredis/hiredis.h>
#include <poll.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/comm/shared_store.h>
#include <sotto/comm/stores.h>

#include "../internal/address/host_lookup.h"
#include "../internal/address/tcp.h"
#include "../internal/backoff.h"
#include "../internal/store_key.h"
#include "../internal/waits.h"

namespace sotto {
namespace {

using RedisConnection = std::unique_ptr<redisContext, decltype(&::redisFree)>;

struct FreeReply {
  void operator()(redisReply* reply) const { ::freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

/// How long a set or a remove waits for the server, which may start after its clients.
constexpr std::chrono::seconds kRedisPatience{30};

/// A look at a key takes a round trip, however soon the wait for the key ends.
constexpr std::chrono::milliseconds kRedisRoundTrip{1000};

/// Bytes of a reply beside its value: its head, or the text of an error; and what comes in one
/// read.
constexpr std::size_t kMostReplyText = std::size_t{64} << 10;
/// What the replies to the commands here begin with: a text, an error, a number, a value.
constexpr std::string_view kReplyMarks = "+-:$";

class RedisStore final : public SharedStore {
 public:
  RedisStore(std::string host, int port, std::string prefix, StopRequest stop)
      : host_(std::move(host)),
        port_(port),
        prefix_(std::move(prefix)),
        stop_(std::move(stop)),
        lookup_(host_) {}

  Status set(std::string_view key, std::span<const std::byte> value) override;
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override;
  Status remove(std::string_view key) override;
  Result<std::optional<std::vector<std::byte>>> look(std::string_view key, std::size_t most,
                                                     Deadline deadline) override;
  Result<std::vector<std::byte>> claim(std::string_view key, std::span<const std::byte> value,
                                       std::size_t most, Deadline deadline) override;
  Status put(std::string_view key, std::span<const std::byte> value, Deadline deadline) override;
  Status drop(std::string_view key, Deadline deadline) override;

 private:
  using Words = std::initializer_list<std::string_view>;

  void connect(Deadline deadline, const char** trouble);
  /// `most`: bytes that the value of the reply may have.
  Result<Reply> ask_once(Words words, std::size_t most, Deadline deadline);
  redisReply* converse(std::size_t most, Deadline deadline, const char** trouble);
  Result<Reply> ask(Words words, std::size_t most, Deadline deadline);

  const std::string host_;
  const int port_;
  const std::string prefix_;
  const StopRequest stop_;
  std::mutex mutex_;
  internal::HostLookup lookup_;
  std::size_t attempts_ = 0;  ///< connections that were begun: each tries the host's next address
  RedisConnection connection_{nullptr, &::redisFree};
};

/// Begins a connection; none after `*trouble`.
void RedisStore::connect(Deadline deadline, const char** trouble) {
  try {
    const auto addresses = lookup_.by(deadline);
    if (!addresses || addresses->empty()) {
      *trouble = addresses            ? "no host of this name is known"
                 : deadline.stopped() ? "stopped while its name was looked up"
                                      : "the name server does not answer";
      return;
    }
    const auto& address = (*addresses)[attempts_++ % addresses->size()];
    connection_.reset(::redisConnectNonBlock(address.numeric.c_str(), port_));
  } catch (const Shortage&) {
    *trouble = "the system gives no thread to look its name up";
  }
}

/// One command over the one connection, which is made if it is not there.
Result<Reply> RedisStore::ask_once(Words words, std::size_t most, Deadline deadline) {
  std::vector<const char*> data;
  std::vector<std::size_t> sizes;
  for (const auto word : words) {
    data.push_back(word.data());
    sizes.push_back(word.size());
  }
  const auto limit = internal::server_deadline(
      std::max<Deadline::Clock::duration>(kRedisRoundTrip, deadline.left()), stop_, deadline);
  const std::lock_guard lock(mutex_);
  const char* trouble = "out of memory";
  if (!connection_) {
    connect(limit, &trouble);
  }
  if (connection_) {
    trouble = connection_->errstr;
  }
  redisReply* reply = nullptr;
  if (connection_ && connection_->err == 0 &&
      ::redisAppendCommandArgv(connection_.get(), static_cast<int>(data.size()), data.data(),
                               sizes.data()) == REDIS_OK) {
    reply = converse(most, limit, &trouble);
  }
  if (reply == nullptr) {
    const Status failed(limit.stopped() ? Fault::stopped : Fault::io,
                        fmt::format("redis at {}:{}: {}", host_, port_, trouble));
    connection_.reset();
    return failed;
  }
  Reply owned(reply);
  if (owned->type == REDIS_REPLY_ERROR) {
    // All others are of the server, which may do the same again later, and not of what is stored.
    const std::string_view error(owned->str, owned->len);
    return Status(error.starts_with("WRONGTYPE") ? Fault::malformed : Fault::io,
                  fmt::format("redis at {}:{}: {}", host_, port_, error));
  }
  return Result<Reply>(std::move(owned));
}

/// Sends what was appended, and waits for the reply; null after `*trouble`, or when the connection
/// says what it is.
redisReply* RedisStore::converse(std::size_t most, Deadline deadline, const char** trouble) {
  redisContext* const redis = connection_.get();
  const redisReader& reader = *redis->reader;
  void* reply = nullptr;
  bool begun = false;
  for (int sent = 0; sent == 0 || reply == nullptr;) {
    const bool sends = sent == 0;
    // hiredis makes room for as many parts as a list says that it has.
    if (!begun && reader.len > reader.pos) {
      begun = true;
      if (kReplyMarks.find(reader.buf[reader.pos]) == std::string_view::npos) {
        *trouble = "it does not answer as a Redis server does";
        return nullptr;
      }
    }
    if ((sends ? ::redisBufferWrite(redis, &sent) : ::redisGetReplyFromReader(redis, &reply)) !=
        REDIS_OK) {
      return nullptr;
    }
    if (sends ? sent != 0 : reply != nullptr) {
      continue;
    }
    if (!internal::await_ready(redis->fd, sends ? POLLOUT : POLLIN, deadline)) {
      *trouble = deadline.stopped() ? "stopped while waiting for it" : "it did not answer";
      return nullptr;
    }
    if (!sends && ::redisBufferRead(redis) != REDIS_OK) {
      return nullptr;
    }
    if (reader.len - reader.pos > most + kMostReplyText) {
      *trouble = "its answer is longer than what was asked for";
      return nullptr;
    }
  }
  return static_cast<redisReply*>(reply);
}

/// Tries again while the server cannot be reached, until the deadline or the store's stop request.
Result<Reply> RedisStore::ask(Words words, std::size_t most, Deadline deadline) {
  const Deadline within = internal::server_deadline(deadline.left(), stop_, deadline);
  internal::Backoff backoff(within);
  for (;;) {
    auto reply = ask_once(words, most, within);
    if (reply.ok() || reply.status().fault() != Fault::io || !backoff.wait()) {
      return reply;
    }
  }
}

Status RedisStore::set(std::string_view key, std::span<const std::byte> value) {
  return put(key, value, internal::server_deadline(kRedisPatience, stop_));
}

Status RedisStore::put(std::string_view key, std::span<const std::byte> value, Deadline deadline) {
  if (auto fits = internal::check_store_entry(key, value); !fits) {
    return fits;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(value.data()), value.size());
  return ask({"SET", prefix_ + std::string(key), bytes}, 0, deadline).status();
}

Result<std::vector<std::byte>> RedisStore::get(std::string_view key, Deadline deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  const auto place = prefix_ + std::string(key);
  internal::Backoff backoff(deadline);
  do {
    const auto reply = ask({"GET", place}, kMostStoreValueBytes, deadline);
    if (!reply) {
      return reply.status();
    }
    if ((*reply)->type == REDIS_REPLY_STRING) {
      const auto* bytes = reinterpret_cast<const std::byte*>((*reply)->str);
      return std::vector(bytes, bytes + (*reply)->len);
    }
  } while (backoff.wait());
  return internal::store_overdue(key, deadline);
}

Status RedisStore::remove(std::string_view key) {
  return drop(key, internal::server_deadline(kRedisPatience, stop_));
}

Status RedisStore::drop(std::string_view key, Deadline deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  return ask({"DEL", prefix_ + std::string(key)}, 0, deadline).status();
}

Result<std::optional<std::vector<std::byte>>> RedisStore::look(std::string_view key,
                                                               std::size_t most,
                                                               Deadline deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  // One byte more than may be there tells a value that is too long, however long it is.
  const auto reply =
      ask({"GETRANGE", prefix_ + std::string(key), "0", fmt::to_string(most)}, most, deadline);
  if (!reply) {
    return reply.status();
  }
  const redisReply& found = **reply;
  if (found.type != REDIS_REPLY_STRING || found.len > most) {
    return Status(Fault::malformed,
                  fmt::format("redis at {}:{}: '{}{}' is no value of at most {} bytes", host_,
                              port_, prefix_, key, most));
  }
  if (found.len == 0) {
    return std::optional<std::vector<std::byte>>();
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(found.str);
  return std::optional(std::vector(bytes, bytes + found.len));
}

Result<std::vector<std::byte>> RedisStore::claim(std::string_view key,
                                                 std::span<const std::byte> value, std::size_t most,
                                                 Deadline deadline) {
  if (auto fits = internal::check_store_claim(key, value, most); !fits) {
    return fits;
  }
  const std::string_view bytes(reinterpret_cast<const char*>(value.data()), value.size());
  for (int tries = 0; tries < internal::kMostClaims; ++tries) {
    // Sent again after a lost answer it finds its own value, which is what is returned.
    const auto reply = ask({"SET", prefix_ + std::string(key), bytes, "NX"}, 0, deadline);
    if (!reply) {
      return reply.status();
    }
    auto there = look(key, most, deadline);
    if (!there) {
      return there.status();
    }
    if (*there) {
      return std::move(**there);
    }
  }
  return internal::store_unclaimed(key);
}

}  // namespace

std::shared_ptr<Store> make_redis_store(const std::string& host, int port,
                                        const std::string& prefix, StopRequest stop) {
  if (port < 1 || port > 65535) {
    refuse("store", fmt::format("redis://{}:{}", host, port), "ports go from 1 to 65535");
  }
  return std::make_shared<RedisStore>(host, port, prefix, std::move(stop));
}

}  // namespace sotto
