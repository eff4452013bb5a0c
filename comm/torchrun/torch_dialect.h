// What a client and a TCPStore of PyTorch's say to each other. The numbers of the requests have
// changed over the versions of PyTorch, and no variable and no answer says which one it is: a
// client finds out by asking (find_dialect).
//
// A request is its number, one byte, and its arguments; a text or a value is its length in 8 bytes,
// and its bytes. All numbers are little-endian. `set` has no answer, `claim` and `get` are answered
// with the value that is there then, `check` with 0 where all keys are there and 1 where they are
// not, `remove` with how many keys there were in 8 bytes. A server that does not know a request
// closes the connection, and so do some for the `get` of a key that is not there, where others
// answer with an empty value.
//
// Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>

#include "torch_connection.h"

namespace sotto::internal {

/// How one range of PyTorch's versions numbers the requests.
struct TorchDialect {
  std::uint8_t set = 0;
  std::uint8_t claim = 0;  ///< sets a key that is compared with what it is expected to be
  std::uint8_t get = 0;
  std::uint8_t check = 0;
  std::uint8_t remove = 0;
  bool greets = false;  ///< a connection begins with torch_greeting()
};
/// The dialect of PyTorch 2.2 and later, also with the older of the two servers (use_libuv=False).
inline constexpr TorchDialect kTorchSince2_2 = {1, 2, 3, 5, 8, true};
/// The dialect of PyTorch 2.1.
inline constexpr TorchDialect kTorch2_1 = {0, 1, 2, 4, 7, false};
/// The dialect of PyTorch 2.0 and earlier.
inline constexpr TorchDialect kTorchUntil2_0 = {0, 1, 2, 4, 8, false};

/// Asks the server at an endpoint, over connections of its own, in a way that does no harm
/// whichever version it is. Fault::unexpected where it is no TCPStore; faults of the connections
/// are passed on.
Result<TorchDialect> find_dialect(const std::string& endpoint, Deadline deadline);

/// The connection's first bytes, where the dialect greets.
std::vector<std::byte> torch_greeting();

std::vector<std::byte> torch_set(const TorchDialect& dialect, std::string_view key,
                                 std::span<const std::byte> value);
/// A request to set a key that is not there, and to leave one that is.
std::vector<std::byte> torch_claim(const TorchDialect& dialect, std::string_view key,
                                   std::span<const std::byte> value);
std::vector<std::byte> torch_get(const TorchDialect& dialect, std::string_view key);
/// A request whether one key is there.
std::vector<std::byte> torch_check(const TorchDialect& dialect, std::string_view key);
std::vector<std::byte> torch_remove(const TorchDialect& dialect, std::string_view key);

/// Whether the key is there. Fault::malformed for what is no answer to a `check`.
Result<bool> receive_check(const TorchConnection& connection, Deadline deadline);
/// The value; Fault::malformed for one that is longer than `most`.
Result<std::vector<std::byte>> receive_value(const TorchConnection& connection, std::size_t most,
                                             Deadline deadline);
/// Waits until a key is removed, if it was there. Fault::malformed for what is no such answer.
Status receive_removed(const TorchConnection& connection, Deadline deadline);

}  // namespace sotto::internal
