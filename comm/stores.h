// The stores that there are, and their URLs.
//
// Thread safety: all functions. Ownership: a store copies what its options hold.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sotto/comm/deadline.h>
#include <sotto/comm/store.h>
#include <sotto/comm/trust/security.h>

namespace sotto {

/// How a store is reached.
struct StoreOptions {
  /// Serve beyond this host in plain text; and with `security` still meet in plain text.
  bool insecure = false;
  /// This node's keys and its peers: what stores that can do so encrypt with.
  std::optional<Security> security{};
  /// The deadline until which a host that cannot be resolved is awaited. Its stop request, of which
  /// the store keeps a copy, also ends waits for a server that does not answer.
  Deadline known_by = Deadline::after({});
};

/// A store within one process.
std::shared_ptr<Store> make_memory_store();
/// A store in a directory that all nodes see (made if absent); values appear by an atomic rename.
std::shared_ptr<Store> make_file_store(const std::string& directory);
/// A store served by node 0 at host:port, reached by the others; needs the ZeroMQ component. Long
/// values travel in pieces: a wait for one that has begun to come ends when no piece comes for
/// 30 s. With `security` everything is encrypted, node 0 is known by its key, and only listed peers
/// are answered, each for its own keys (zmq/store/store_rules.h) and within its room
/// (zmq/store/stored_values.h). Without, serving beyond loopback is refused unless `insecure`.
/// Throws Error, and Stopped when the stop request ends the wait for the host's name.
std::shared_ptr<Store> make_tcp_store(const std::string& host, int port, bool serve,
                                      const StoreOptions& options = {});
/// A store on a Redis server, keys prefixed by `prefix`; needs the hiredis component. `stop` also
/// ends waits for a server that does not answer.
std::shared_ptr<Store> make_redis_store(const std::string& host, int port,
                                        const std::string& prefix, StopRequest stop = {});

/// The URL scheme of a store in PyTorch's TCPStore.
inline constexpr std::string_view kTorchScheme = "torch://";
/// A store in a TCPStore of PyTorch's, as torchrun's agent serves one, keys prefixed by `prefix`;
/// the program needs no PyTorch. Like Redis it survives node 0. Its values lie in the server's
/// memory, and travel in plain text. The server must be running: its first answer is awaited for
/// 10 s, and an answer of another kind of server is Fault::unexpected. `stop` also ends waits for a
/// server that does not answer. Throws Error for a host that cannot be resolved.
std::shared_ptr<Store> make_torch_store(const std::string& host, int port,
                                        const std::string& prefix, StopRequest stop = {});

/// Throws Error for what make_store takes for no URL of a store; opens nothing.
void check_store_url(const std::string& url);

/// The store of a URL: `memory:`, `file:DIR`, `tcp://HOST:PORT` (node 0 serves),
/// `redis://HOST:PORT/PREFIX`, `torch://HOST:PORT/PREFIX`. Throws Error for anything else, for a
/// component that this build lacks, and, with `security`, for a store that sends in plain text
/// unless `insecure`. Throws Stopped when the stop request ends the wait for a host's name.
std::shared_ptr<Store> make_store(const std::string& url, int rank,
                                  const StoreOptions& options = {});

}  // namespace sotto
