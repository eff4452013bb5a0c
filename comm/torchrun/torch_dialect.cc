#include "torch_dialect.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/bytes.h>

namespace sotto::internal {
namespace {

/// First bytes by which a server knows, from 2.2 on, that a client of its own kind has connected.
constexpr std::uint32_t kValidation = 0x3C85F7CE;
/// The request for the number of keys: it has no arguments, and an answer of 8 bytes.
constexpr std::uint8_t kCountSince2_2 = 7;
constexpr std::uint8_t kCountBefore2_2 = 6;
/// How many of these requests follow the greeting. To a server before 2.2 all of it is one
/// `set` of a key of 5e17 bytes: no machine has the memory, and the server closes the
/// connection. Fewer requests would leave it waiting for the rest of the length, and all of its
/// clients with it.
constexpr int kCounts = 4;
/// A plausible number of keys; what a foreign server says is none.
constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 32U;
/// In 2.1 this removes a key; before, it asks to be told of the key's changes, which this answers.
constexpr std::uint8_t kRemoveOrWatch = 7;
constexpr std::uint8_t kWatching = 3;
/// Nobody sets it.
constexpr std::string_view kNobodysKey = "sotto/dialect";

Status no_torch_store() { return {Fault::unexpected, "what answers there is no such store"}; }

void write_run(ByteBuffer& out, std::span<const std::byte> bytes) {
  out.write(std::uint64_t{bytes.size()});
  out.append(bytes);
}

ByteBuffer request_for(std::uint8_t number, std::string_view key) {
  ByteBuffer out;
  out.write(number);
  write_run(out, std::as_bytes(std::span(key)));
  return out;
}

template <typename T>
Result<T> receive_number(const TorchConnection& connection, Deadline deadline) {
  std::array<std::byte, sizeof(T)> bytes{};
  if (Status status = connection.receive(bytes, deadline); !status.ok()) {
    return status;
  }
  return ByteReader(bytes).read<T>();
}

/// Whether the server gives `counts` numbers of keys for these bytes; false where it closes the
/// connection.
Result<bool> gives_counts(const std::string& endpoint, std::span<const std::byte> bytes, int counts,
                          Deadline deadline) {
  const auto connection = TorchConnection::open(endpoint, deadline);
  if (!connection.ok()) {
    return connection.status();
  }
  Status said = connection->send(bytes, deadline);
  for (int i = 0; said.ok() && i < counts; ++i) {
    const auto count = receive_number<std::uint64_t>(*connection, deadline);
    if (count.ok() && *count > kMostKeys) {
      return no_torch_store();
    }
    said = count.status();
  }
  return said.ok() || said.fault() == Fault::io ? Result<bool>(said.ok()) : said;
}

/// Finds which of the dialects without a greeting it is.
Result<TorchDialect> find_removal(const std::string& endpoint, Deadline deadline) {
  const auto connection = TorchConnection::open(endpoint, deadline);
  if (!connection.ok()) {
    return connection.status();
  }
  const ByteBuffer asked = request_for(kRemoveOrWatch, kNobodysKey);
  if (Status sent = connection->send(asked.bytes(), deadline); !sent.ok()) {
    return sent;
  }
  const auto said = receive_number<std::uint8_t>(*connection, deadline);
  if (!said.ok()) {
    return said.status();
  }
  if (*said != kWatching && *said != 0) {
    return no_torch_store();
  }
  return *said == kWatching ? kTorchUntil2_0 : kTorch2_1;
}

}  // namespace

Result<TorchDialect> find_dialect(const std::string& endpoint, Deadline deadline) {
  std::vector<std::byte> greeting = torch_greeting();
  greeting.insert(greeting.end(), kCounts, std::byte{kCountSince2_2});
  const auto since_2_2 = gives_counts(endpoint, greeting, kCounts, deadline);
  if (!since_2_2.ok() || *since_2_2) {
    return since_2_2.ok() ? Result<TorchDialect>(kTorchSince2_2) : since_2_2.status();
  }
  constexpr std::array kCount = {std::byte{kCountBefore2_2}};
  const auto before = gives_counts(endpoint, kCount, 1, deadline);
  if (!before.ok() || !*before) {
    return before.ok() ? no_torch_store() : before.status();
  }
  return find_removal(endpoint, deadline);
}

std::vector<std::byte> torch_greeting() {
  ByteBuffer out;
  out.write(std::uint8_t{0});
  out.write(kValidation);
  return std::move(out).take();
}

std::vector<std::byte> torch_set(const TorchDialect& dialect, std::string_view key,
                                 std::span<const std::byte> value) {
  ByteBuffer out = request_for(dialect.set, key);
  write_run(out, value);
  return std::move(out).take();
}

std::vector<std::byte> torch_claim(const TorchDialect& dialect, std::string_view key,
                                   std::span<const std::byte> value) {
  ByteBuffer out = request_for(dialect.claim, key);
  write_run(out, {});  // what is expected: nothing
  write_run(out, value);
  return std::move(out).take();
}

std::vector<std::byte> torch_get(const TorchDialect& dialect, std::string_view key) {
  return request_for(dialect.get, key).take();
}

std::vector<std::byte> torch_check(const TorchDialect& dialect, std::string_view key) {
  ByteBuffer out;
  out.write(dialect.check);
  out.write(std::uint64_t{1});
  write_run(out, std::as_bytes(std::span(key)));
  return std::move(out).take();
}

std::vector<std::byte> torch_remove(const TorchDialect& dialect, std::string_view key) {
  return request_for(dialect.remove, key).take();
}

Result<bool> receive_check(const TorchConnection& connection, Deadline deadline) {
  const auto said = receive_number<std::uint8_t>(connection, deadline);
  if (said.ok() && *said > 1) {
    return Status(Fault::malformed,
                  fmt::format("it says {} of whether a key is there: 0 or 1 was due", *said));
  }
  return said.ok() ? Result<bool>(*said == 0) : said.status();
}

Result<std::vector<std::byte>> receive_value(const TorchConnection& connection, std::size_t most,
                                             Deadline deadline) {
  const auto size = receive_number<std::uint64_t>(connection, deadline);
  if (!size.ok()) {
    return size.status();
  }
  if (*size > most) {
    return Status(Fault::malformed,
                  fmt::format("it announces a value of {} bytes: at most {} are due", *size, most));
  }
  std::vector<std::byte> value(*size);
  Status status = connection.receive(value, deadline);
  return status.ok() ? Result<std::vector<std::byte>>(std::move(value)) : status;
}

Status receive_removed(const TorchConnection& connection, Deadline deadline) {
  const auto count = receive_number<std::uint64_t>(connection, deadline);
  if (count.ok() && *count > 1) {
    return {Fault::malformed, fmt::format("it says that it removed {} keys of one", *count)};
  }
  return count.status();
}

}  // namespace sotto::internal
