// Short messages between the nodes of one run, which may be lost: datagrams of UDP, each sealed
// with a key that all nodes of the run share.
//
// A datagram is a sealed message (trust/sealed_message.h). What does not open is dropped and
// counted. One that is sent again by somebody else opens, too: receivers must bear with what they
// have seen.
//
// Thread safety: one thread at a time. Ownership: its sockets and the key. Names of
// hosts that are sent to are looked up in threads that it leaves behind; the constructor waits for
// the name server, which has no deadline of its own here but for the name of `towards`.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/file_descriptor.h>
#include <sotto/base/status.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/trust/keys.h>

namespace sotto {

/// Stands for all other machines; no machine has it (RFC 5737). Towards it lies the address of a
/// machine's own name, or else that of its default route.
inline constexpr std::string_view kAnywhere = "192.0.2.1:9";

/// Where a node receives datagrams, and takes connections at the same port.
struct DatagramPlace {
  /// HOST:PORT; port 0: any that is free. Empty: the first of `seeds` that is an address of this
  /// machine and not taken, else the address from which this machine reaches the first of them, or
  /// `towards` where there are none, at any free port; else loopback.
  std::string listen{};
  std::vector<std::string> seeds{};  ///< HOST:PORT of nodes that others look for
  std::string towards{};  ///< HOST:PORT of anything where the other nodes are; empty: nothing
  std::chrono::milliseconds known_within{0};  ///< how long the name of `towards` is waited for
  bool beyond_loopback = false;  ///< whether the address may be one that other machines reach
};

/// A message that came, and the address that it came from.
struct ReceivedDatagram {
  std::string from{};
  std::vector<std::byte> message{};
};

class SealedDatagrams {
 public:
  /// Binds at the place. Throws Error (field `listen` or `seeds`) for an address that is none, that
  /// lies beyond loopback where it may not, that stands for all addresses of the machine, or that
  /// is taken.
  SealedDatagrams(const DatagramPlace& place, PrivateKey key);
  ~SealedDatagrams();
  SealedDatagrams(const SealedDatagrams&) = delete;
  SealedDatagrams& operator=(const SealedDatagrams&) = delete;

  /// Where it is bound, in numbers: "10.0.0.1:9001".
  const std::string& address() const { return address_; }
  /// Sends a message to HOST:PORT, to each of a few addresses that the name stands for, or drops
  /// it: the network may refuse it, and a name may not be known yet.
  void send(const std::string& to, std::span<const std::byte> message);
  /// The next message, if one comes by the deadline. Of what does not open, a flood of it too, it
  /// drops 64 datagrams at most once the deadline is over.
  std::optional<ReceivedDatagram> receive(Deadline deadline);
  /// Datagrams that did not open.
  std::uint64_t refused() const { return refused_; }
  /// Whether the host of HOST:PORT is one in numbers, or a name that was found.
  bool knows(const std::string& to) { return !endpoints_of(to).empty(); }
  /// Whether HOST:PORT is where it is bound: in numbers, or by a name that stands for this address,
  /// or, as a machine's own often does, for loopback. Of a name that several machines have the one
  /// with the least address is there. Loopback in numbers, or as localhost, may be another
  /// process's. False while the name is looked up.
  bool is_at(const std::string& to);
  /// Whether HOST:PORT is where it is bound, and no other machine's too.
  bool is_alone_at(const std::string& to);

 private:
  struct Name;

  /// Endpoints of other machines that HOST:PORT stands for as well as for this one; none: it is not
  /// where this is bound.
  std::optional<std::vector<std::string>> shared_with(const std::string& to);
  /// "tcp://10.0.0.1:9001" of an address, and further ones of a name that stands for several; none
  /// while the name is looked up.
  std::vector<std::string> endpoints_of(const std::string& to);

  PrivateKey key_;
  FileDescriptor socket_;
  std::string address_;
  std::map<std::string, std::shared_ptr<Name>> names_;  ///< hosts that are looked up
  std::uint64_t refused_ = 0;
};

}  // namespace sotto
