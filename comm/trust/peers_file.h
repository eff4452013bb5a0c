// The file that lists the nodes a node trusts: one line a node, itself included.
//
//   rank,name,key,address,may_send,send_to
//   0,hospital,<40 characters>,10.0.0.1:9001,yes,yes
//   1,bank,<40 characters>,10.0.0.2:9001,yes,no
//
// `key` is the public key as `sotto keygen` prints it. `address` is where the node listens; it may
// be empty for all, then the nodes find each other through the store. `may_send`: its messages are
// taken; `send_to`: it is sent to; both are "yes" where their column is missing. Lines that begin
// with # and empty ones are skipped.
//
// Sites know each other by name: each has one of its own, and a number made of it,
// so that numbers stay when lines come and go. Their lists need no ranks. Their `address` is empty
// where a site only dials, and may be several, with spaces between them, that are tried in turn.
//
// A site whose key changes has a line for each key, the new one first. These lines differ in `key`
// and `until` alone: 2026-12-31, a day that counts to its end in UTC, or 2026-12-31T18:00:00Z. From
// then on the line counts as taken out.
//
// Functions are thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/comm/trust/allow_list.h>

namespace sotto {

/// Lines that a file may have.
inline constexpr std::size_t kMostPeers = 4096;
/// Keys that one site may have at once.
inline constexpr std::size_t kMostKeysOfPeer = 4;
/// Addresses that one site may have.
inline constexpr std::size_t kMostAddressesOfPeer = 8;

/// The source of a line's number.
enum class PeerNumbers {
  ranks,     ///< the file has a column of ranks
  of_names,  ///< made from the name
};

/// Reads a list of peers, without expired keys. Throws Error, with file and line, for a malformed
/// file.
std::vector<TrustedPeer> read_peers_file(const std::string& path,
                                         PeerNumbers numbers = PeerNumbers::ranks);
/// The text of a list of peers. Throws Error for a file that cannot be read, is too long, or that
/// everybody on this host can change.
std::string read_peers_text(const std::string& path);
/// Parses the text of a list of peers, whatever the time.
std::vector<TrustedPeer> parse_peers_file(const std::string& path, std::string_view text,
                                          PeerNumbers numbers = PeerNumbers::ranks);

}  // namespace sotto
