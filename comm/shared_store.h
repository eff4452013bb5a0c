// A store in which what is there is found without a wait, and of those that put a value under one
// key at once one is the first: for nodes that come and go, where a key may never be set.
//
// `file:`, `redis://` and `torch://` are such stores: they need no node of the run to serve them.
// Thread safety: as Store.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/store.h>

namespace sotto {

class SharedStore : public Store {
 public:
  /// The value of a key by now; none: it has none, or in Redis an empty one. Reads no more than
  /// `most` bytes: Fault::malformed where there are more, or what is there is no value, as an empty
  /// file. Fault::io where the store does not answer by the deadline, in `torch://` within a second
  /// at least; a call to a file server that
  /// hangs has none, and its thread must be one that can be left behind.
  virtual Result<std::optional<std::vector<std::byte>>> look(std::string_view key, std::size_t most,
                                                             Deadline deadline) = 0;
  /// Puts a value, which is not empty, where the key has none, and returns what is there then: of
  /// several that claim one key all get the value of the first. Faults as look().
  virtual Result<std::vector<std::byte>> claim(std::string_view key,
                                               std::span<const std::byte> value, std::size_t most,
                                               Deadline deadline) = 0;
  /// As set(), and waits for a server until the deadline at most.
  virtual Status put(std::string_view key, std::span<const std::byte> value, Deadline deadline) = 0;
  /// As remove(), likewise.
  virtual Status drop(std::string_view key, Deadline deadline) = 0;
};

/// Whether a text is the URL of a store, by its scheme, rather than HOST:PORT.
bool names_store(std::string_view text);

/// Throws Error with this field for what make_shared_store takes for no URL; opens nothing.
void check_shared_store(std::string_view field, const std::string& url);

/// The shared store of a URL, `file:DIR`, `redis://HOST:PORT/PREFIX` or `torch://HOST:PORT/PREFIX`,
/// the last of PyTorch 1.9 or later. Throws Error with this field for any other, for a component
/// that this build lacks, and for a torch:// host that is not known within 30 s. `stop` also ends
/// waits for a server that does not answer.
std::shared_ptr<SharedStore> make_shared_store(std::string_view field, const std::string& url,
                                               StopRequest stop = {});

/// HOST:PORT of a store's server; empty: it has none. Throws Error as check_store_url().
std::string server_of_store(const std::string& url);

}  // namespace sotto
