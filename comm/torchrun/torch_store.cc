// A store in a TCPStore of PyTorch's, as torchrun's agent serves one to the processes that it
// starts.
//
// Under a key stands its head: a short value, or a long value's length and version, whose pieces
// have keys of their own: some servers close the connection at a value of more than 8 MiB. A head
// is never empty, as some servers give an empty value for a key that is not there. A get looks
// again and again: of the requests that wait, the older servers cannot be told to stop.
//
// A claim is a `claim` of the head, of which the server takes the first. The pieces of a long value
// are there before, and taken away where another head was first.
#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/comm/shared_store.h>
#include <sotto/comm/stores.h>

#include "../internal/address/address.h"
#include "../internal/backoff.h"
#include "../internal/meeting/start_number.h"
#include "../internal/store_key.h"
#include "../internal/waits.h"
#include "torch_connection.h"
#include "torch_dialect.h"

namespace sotto {
namespace {

using internal::TorchConnection;
using internal::TorchDialect;
using Bytes = std::vector<std::byte>;

/// The kind of value that a head announces.
enum class TorchHead : std::uint8_t { value = 1, pieces = 2 };

constexpr std::size_t kTorchShortValue = std::size_t{4} << 10;
/// Bytes of a long value's head.
constexpr std::size_t kLongHead = 1 + 2 * sizeof(std::uint64_t);
constexpr std::size_t kTorchPiece = std::size_t{1} << 20;
/// How long a set, a remove or a piece may take; and the first answer, of a server that is there
/// already, as the agent starts it before the processes.
constexpr std::chrono::seconds kTorchPatience{30};
constexpr std::chrono::seconds kTorchFirstAnswer{10};
/// A look at a key takes a round trip, however soon the wait for the key ends.
constexpr std::chrono::milliseconds kTorchRoundTrip{1000};
/// How often a request is made anew, however little time there is: a server may have closed a
/// connection that nobody used, or closes it for a key that was removed at that moment.
constexpr int kTorchAttempts = 3;
/// How often a value is fetched anew that is replaced meanwhile.
constexpr int kTorchFetches = 10;
constexpr std::size_t kMostTorchPrefix = 2'000;

constexpr const char* kTorchAdvice =
    "torchrun's agent serves a TCPStore at MASTER_ADDR and MASTER_PORT where it says "
    "TORCHELASTIC_USE_AGENT_STORE=True: where none does, unset that, and nodes of the run serve "
    "what they meet by";

/// A value in pieces, as its head says.
struct LongValue {
  std::uint64_t version = 0;
  std::uint64_t bytes = 0;

  std::size_t pieces() const { return (bytes + kTorchPiece - 1) / kTorchPiece; }
  /// '#' is in no key of a store.
  std::string piece(const std::string& place, std::size_t i) const {
    return fmt::format("{}#{:016x}#{}", place, version, i);
  }
};

Bytes short_head(std::span<const std::byte> value) {
  ByteBuffer out;
  out.write(static_cast<std::uint8_t>(TorchHead::value));
  out.append(value);
  return std::move(out).take();
}

Bytes long_head(const LongValue& value) {
  ByteBuffer out;
  out.write(static_cast<std::uint8_t>(TorchHead::pieces));
  out.write(value.version);
  out.write(value.bytes);
  return std::move(out).take();
}

/// The long value of a head, if it is that of one.
Result<std::optional<LongValue>> read_long_head(std::span<const std::byte> head) {
  using Found = std::optional<LongValue>;
  ByteReader in(head);
  const auto kind = static_cast<TorchHead>(in.read<std::uint8_t>());
  if (kind == TorchHead::value) {
    return Found();
  }
  LongValue value;
  value.version = in.read<std::uint64_t>();
  value.bytes = in.read<std::uint64_t>();
  const bool sound =
      kind == TorchHead::pieces && in.finished() && value.bytes <= kMostStoreValueBytes;
  return sound ? Result<Found>(value)
               : Status(Fault::malformed, "what stands under the key is not of sotto's");
}

/// Requests over one connection, each of which is answered before the next.
class TorchTalk {
 public:
  /// `whole`: the limit is that of all requests together.
  TorchTalk(const TorchConnection& connection, const TorchDialect& dialect, const StopRequest& stop,
            Deadline limit, bool whole)
      : connection_(connection), dialect_(dialect), stop_(stop), limit_(limit), whole_(whole) {}

  /// The value at a place, at most `most` bytes; none when nothing is there.
  Result<std::optional<Bytes>> read(const std::string& place, std::size_t most) {
    using Found = std::optional<Bytes>;
    const auto there = check(place);
    if (!there.ok() || !*there) {
      return there.ok() ? Result<Found>(Found()) : there.status();
    }
    if (Status sent = connection_.send(torch_get(dialect_, place), limit_); !sent.ok()) {
      return sent;
    }
    auto value = internal::receive_value(connection_, most, limit_);
    if (!value.ok()) {
      return value.status();
    }
    return value->empty() ? Found() : Found(std::move(*value));
  }
  /// The server takes it in the order of the requests, and says nothing.
  Status write(const std::string& place, std::span<const std::byte> value) {
    return connection_.send(torch_set(dialect_, place, value), limit_);
  }
  /// Puts a head where there is none, and returns the one that is there then.
  Result<Bytes> claim(const std::string& place, std::span<const std::byte> head) {
    Status sent = connection_.send(torch_claim(dialect_, place, head), limit_);
    return sent.ok() ? internal::receive_value(connection_, kTorchShortValue + 1, limit_) : sent;
  }
  Result<bool> check(const std::string& place) {
    Status sent = connection_.send(torch_check(dialect_, place), limit_);
    return sent.ok() ? internal::receive_check(connection_, limit_) : sent;
  }
  Status remove(const std::string& place) {
    Status sent = connection_.send(torch_remove(dialect_, place), limit_);
    return sent.ok() ? internal::receive_removed(connection_, limit_) : sent;
  }
  /// Removes the pieces of a long value.
  Status remove_pieces(const std::string& place, const LongValue& value) {
    Status status;
    for (std::size_t i = 0; status.ok() && i < value.pieces(); ++i) {
      renew();
      status = remove(value.piece(place, i));
    }
    return status;
  }
  /// Writes the pieces of a long value.
  Status write_pieces(const std::string& place, const LongValue& whole,
                      std::span<const std::byte> value) {
    Status status;
    for (std::size_t i = 0; status.ok() && i < whole.pieces(); ++i) {
      renew();
      status = write(
          whole.piece(place, i),
          value.subspan(i * kTorchPiece, std::min(kTorchPiece, value.size() - i * kTorchPiece)));
    }
    return status;
  }
  /// Restarts the deadline, unless it is one of all requests: the next one gets the time of a
  /// piece.
  void renew() {
    if (!whole_) {
      limit_ = internal::server_deadline(kTorchPatience, stop_);
    }
  }

 private:
  const TorchConnection& connection_;
  const TorchDialect& dialect_;
  const StopRequest& stop_;
  Deadline limit_;
  const bool whole_;
};

const Status& status_of(const Status& status) { return status; }
template <typename T>
const Status& status_of(const Result<T>& result) {
  return result.status();
}

class TorchStore final : public SharedStore {
 public:
  TorchStore(std::string endpoint, std::string prefix, StopRequest stop)
      : endpoint_(std::move(endpoint)), prefix_(std::move(prefix)), stop_(std::move(stop)) {}

  Status set(std::string_view key, std::span<const std::byte> value) override;
  Result<Bytes> get(std::string_view key, Deadline deadline) override;
  Status remove(std::string_view key) override;
  Result<std::optional<Bytes>> look(std::string_view key, std::size_t most,
                                    Deadline deadline) override;
  Result<Bytes> claim(std::string_view key, std::span<const std::byte> value, std::size_t most,
                      Deadline deadline) override;
  Status put(std::string_view key, std::span<const std::byte> value, Deadline deadline) override;
  Status drop(std::string_view key, Deadline deadline) override;

 private:
  using Found = std::optional<Bytes>;

  /// How long a call may talk to the server.
  struct Limits {
    Deadline answer;     ///< deadline of an answer, or with `whole` of all of them
    Deadline patience;   ///< deadline for new connections, where some break
    bool whole = false;  ///< no answer is waited for beyond `answer`
  };

  std::string place(std::string_view key) const { return prefix_ + std::string(key); }
  /// Limits of a call without a deadline.
  Limits patient() const {
    const auto limit = internal::server_deadline(kTorchPatience, stop_);
    return {.answer = limit, .patience = limit};
  }
  /// Limits of a call that ends by a deadline, though a server gets a round trip at least.
  Limits limits_by(const Deadline& deadline) const {
    const auto answer = internal::server_deadline(
        std::max<Deadline::Clock::duration>(kTorchRoundTrip, deadline.left()), stop_, deadline);
    return {.answer = answer, .patience = deadline.or_at(answer.at()), .whole = true};
  }
  Status set(std::string_view key, std::span<const std::byte> value, const Limits& limits);
  Status remove(std::string_view key, const Limits& limits);
  Result<TorchDialect> dialect(const Limits& limits);
  Result<TorchConnection> borrow(const TorchDialect& dialect, const Deadline& deadline);
  template <typename Talk>
  auto talk(const Limits& limits, const Talk& talk) -> decltype(talk(std::declval<TorchTalk&>()));
  Status named(const Status& status, std::string_view advice = {}) const;
  /// The long value that a set or a remove takes away; none: there is none, or what stands there
  /// was written by others. It is looked for once: where a connection breaks in the middle, the
  /// next one would find what this call has written itself.
  Result<std::optional<LongValue>> long_value_at(const std::string& place, const Limits& limits);

  static Result<Found> fetch(TorchTalk& talk, const std::string& place, std::size_t most,
                             bool* replaced);
  static Result<std::optional<LongValue>> find_long(TorchTalk& talk, const std::string& place);

  const std::string endpoint_;  ///< address of the server, "tcp://127.0.0.1:29500"
  const std::string prefix_;
  const StopRequest stop_;
  std::mutex meeting_;
  std::optional<TorchDialect> dialect_;  ///< dialect of the server; none before it has answered
  std::mutex mutex_;
  std::vector<TorchConnection> idle_;
};

Status TorchStore::named(const Status& status, std::string_view advice) const {
  return {status.fault(), fmt::format("PyTorch's store at {}: {}{}{}", endpoint_.substr(6),
                                      status.message(), advice.empty() ? "" : ". ", advice)};
}

/// The server's, which is asked once. What was wrong is no deadline, as waiting for a key would not
/// mend it.
Result<TorchDialect> TorchStore::dialect(const Limits& limits) {
  const std::lock_guard lock(meeting_);
  if (dialect_) {
    return *dialect_;
  }
  const auto first = internal::server_deadline(kTorchFirstAnswer, stop_, limits.patience);
  const auto limit = limits.whole ? first.or_at(limits.answer.at()) : first;
  internal::Backoff backoff(limit);
  auto found = internal::find_dialect(endpoint_, limit);
  while (!found.ok() && found.status().fault() == Fault::io && backoff.wait()) {
    found = internal::find_dialect(endpoint_, limit);
  }
  if (!found.ok()) {
    const Status& status = found.status();
    return status.fault() == Fault::stopped
               ? named(status)
               : named({status.fault() == Fault::deadline ? Fault::io : status.fault(),
                        status.message()},
                       kTorchAdvice);
  }
  dialect_ = *found;
  return found;
}

Result<TorchConnection> TorchStore::borrow(const TorchDialect& dialect, const Deadline& deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      TorchConnection connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  auto connection = TorchConnection::open(endpoint_, deadline);
  if (connection.ok() && dialect.greets) {
    Status greeted = connection->send(internal::torch_greeting(), deadline);
    return greeted.ok() ? std::move(connection) : greeted;
  }
  return connection;
}

/// Has a conversation on a connection of its own, and again on another while connections break, for
/// as long as the limits' patience and a few times at least.
template <typename Talk>
auto TorchStore::talk(const Limits& limits, const Talk& talk)
    -> decltype(talk(std::declval<TorchTalk&>())) {
  const auto known = dialect(limits);
  if (!known.ok()) {
    return known.status();
  }
  internal::Backoff backoff(limits.patience);
  for (int attempt = 1;; ++attempt) {
    auto connection = borrow(*known, limits.answer);
    Status failed = connection.status();
    if (connection.ok()) {
      TorchTalk conversation(*connection, *known, stop_, limits.answer, limits.whole);
      auto result = talk(conversation);
      if (result.ok()) {
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(*connection));
        return result;
      }
      failed = status_of(result);
    }
    if (failed.fault() == Fault::deadline) {
      failed = {Fault::io, failed.message()};  // the server is late, not the key
    } else if (failed.fault() == Fault::io && (attempt < kTorchAttempts || backoff.wait())) {
      continue;
    }
    return named(failed);
  }
}

Result<std::optional<LongValue>> TorchStore::find_long(TorchTalk& talk, const std::string& place) {
  const auto head = talk.read(place, kTorchShortValue + 1);
  if (!head.ok() || !*head) {
    return head.ok() ? Result<std::optional<LongValue>>(std::nullopt) : head.status();
  }
  return read_long_head(**head);
}

Result<std::optional<LongValue>> TorchStore::long_value_at(const std::string& place,
                                                           const Limits& limits) {
  auto found = talk(limits, [&](TorchTalk& talk) { return find_long(talk, place); });
  const bool foreign = !found.ok() && found.status().fault() == Fault::malformed;
  return foreign ? Result<std::optional<LongValue>>(std::nullopt) : std::move(found);
}

/// The value of a place, if there is one, and whether it made way for another meanwhile.
/// Fault::malformed for one that is longer than `most`.
Result<std::optional<Bytes>> TorchStore::fetch(TorchTalk& talk, const std::string& place,
                                               std::size_t most, bool* replaced) {
  const std::size_t short_one = std::min(kTorchShortValue, most) + 1;
  auto head = talk.read(place, std::max(short_one, kLongHead));
  if (!head.ok() || !*head) {
    return head;
  }
  const auto stands = read_long_head(**head);
  if (!stands.ok()) {
    return stands.status();
  }
  const std::uint64_t bytes = *stands ? (*stands)->bytes : (*head)->size() - 1;
  if (bytes > most) {
    return Status(Fault::malformed,
                  fmt::format("there is a value of {} bytes: at most {} are due", bytes, most));
  }
  if (!*stands) {
    return Found(Bytes((*head)->begin() + 1, (*head)->end()));
  }
  const LongValue& whole = **stands;
  Bytes value;
  for (std::size_t i = 0; i < whole.pieces(); ++i) {
    talk.renew();
    const std::size_t due = std::min<std::size_t>(kTorchPiece, whole.bytes - value.size());
    const auto piece = talk.read(whole.piece(place, i), due);
    if (!piece.ok()) {
      return piece.status();
    }
    if (!*piece) {
      *replaced = true;
      return Found();
    }
    if ((*piece)->size() != due) {
      return Status(Fault::malformed, "a piece of a long value has another length");
    }
    value.insert(value.end(), (*piece)->begin(), (*piece)->end());
  }
  return Found(std::move(value));
}

Result<Bytes> TorchStore::get(std::string_view key, Deadline deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  const std::string where = place(key);
  internal::Backoff backoff(deadline);
  int fetches = 0;
  bool replaced = false;
  do {
    replaced = false;
    Limits limits = limits_by(deadline);
    limits.whole = false;
    auto found = talk(limits, [&](TorchTalk& talk) {
      return fetch(talk, where, kMostStoreValueBytes, &replaced);
    });
    if (!found.ok()) {
      return found.status();
    }
    if (*found) {
      return std::move(**found);
    }
    if (replaced && ++fetches == kTorchFetches) {
      return internal::store_replaced(key);
    }
  } while (replaced || backoff.wait());
  return internal::store_overdue(key, deadline);
}

Result<std::optional<Bytes>> TorchStore::look(std::string_view key, std::size_t most,
                                              Deadline deadline) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  const std::string where = place(key);
  for (int fetches = 0; fetches < kTorchFetches; ++fetches) {
    bool replaced = false;
    auto found = talk(limits_by(deadline),
                      [&](TorchTalk& talk) { return fetch(talk, where, most, &replaced); });
    if (!found.ok() || !replaced) {
      return found;
    }
  }
  return internal::store_replaced(key);
}

Result<Bytes> TorchStore::claim(std::string_view key, std::span<const std::byte> value,
                                std::size_t most, Deadline deadline) {
  if (auto fits = internal::check_store_claim(key, value, most); !fits) {
    return fits;
  }
  const std::string where = place(key);
  const bool fits_head = value.size() <= kTorchShortValue;
  const LongValue whole{internal::draw_start_number(0), value.size()};
  const Bytes head = fits_head ? short_head(value) : long_head(whole);
  for (int claims = 0; claims < internal::kMostClaims; ++claims) {
    const auto there = talk(limits_by(deadline), [&](TorchTalk& talk) -> Result<Bytes> {
      Status status = fits_head ? Status() : talk.write_pieces(where, whole, value);
      auto first = status.ok() ? talk.claim(where, head) : Result<Bytes>(status);
      if (first.ok() && *first != head && !fits_head) {
        status = talk.remove_pieces(where, whole);
      }
      return status.ok() ? std::move(first) : Result<Bytes>(status);
    });
    if (!there.ok()) {
      return there.status();
    }
    if (*there == head) {
      return Bytes(value.begin(), value.end());
    }
    auto found = look(key, most, deadline);
    if (!found.ok()) {
      return found.status();
    }
    if (*found && (*found)->empty()) {
      return Status(Fault::malformed, fmt::format("an empty value stands under {}", key));
    }
    if (*found) {
      return std::move(**found);
    }
  }
  return internal::store_unclaimed(key);
}

Status TorchStore::set(std::string_view key, std::span<const std::byte> value) {
  return set(key, value, patient());
}

Status TorchStore::put(std::string_view key, std::span<const std::byte> value, Deadline deadline) {
  return set(key, value, limits_by(deadline));
}

Status TorchStore::set(std::string_view key, std::span<const std::byte> value,
                       const Limits& limits) {
  if (auto fits = internal::check_store_entry(key, value); !fits) {
    return fits;
  }
  const std::string where = place(key);
  const bool fits_head = value.size() <= kTorchShortValue;
  const LongValue whole{internal::draw_start_number(0), value.size()};
  const auto before = long_value_at(where, limits);
  if (!before.ok()) {
    return before.status();
  }
  return talk(limits, [&](TorchTalk& talk) -> Status {
    Status status = fits_head ? Status() : talk.write_pieces(where, whole, value);
    if (status.ok()) {
      status = talk.write(where, fits_head ? short_head(value) : long_head(whole));
    }
    if (status.ok()) {
      status = talk.check(where).status();  // answered after all of it was taken
    }
    return status.ok() && *before ? talk.remove_pieces(where, **before) : status;
  });
}

Status TorchStore::remove(std::string_view key) { return remove(key, patient()); }

Status TorchStore::drop(std::string_view key, Deadline deadline) {
  return remove(key, limits_by(deadline));
}

Status TorchStore::remove(std::string_view key, const Limits& limits) {
  if (auto fits = internal::check_store_key(key); !fits) {
    return fits;
  }
  const std::string where = place(key);
  const auto before = long_value_at(where, limits);
  if (!before.ok()) {
    return before.status();
  }
  return talk(limits, [&](TorchTalk& talk) -> Status {
    Status status = talk.remove(where);
    return status.ok() && *before ? talk.remove_pieces(where, **before) : status;
  });
}

}  // namespace

std::shared_ptr<Store> make_torch_store(const std::string& host, int port,
                                        const std::string& prefix, StopRequest stop) {
  if (prefix.size() > kMostTorchPrefix) {
    refuse("store", excerpt(prefix, 40),
           fmt::format("a prefix of {} bytes is too long: {} at most, so give the run a shorter "
                       "name (torchrun's rdzv-id)",
                       prefix.size(), kMostTorchPrefix));
  }
  const auto endpoint = internal::resolve_host("store", host).endpoint(fmt::to_string(port));
  // The length of the prefix keeps the keys of "job/1" apart from those of "job".
  return std::make_shared<TorchStore>(endpoint, fmt::format("sotto/{}/{}/", prefix.size(), prefix),
                                      std::move(stop));
}

}  // namespace sotto
