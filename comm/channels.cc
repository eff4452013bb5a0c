#include <sotto/comm/channels.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "internal/address/host_port.h"
#include "internal/backends.h"

namespace sotto {
namespace {

constexpr std::chrono::milliseconds kLeastTimeout{100};

void check_list(const ChannelOptions& options) {
  const auto& own = options.security.own.public_key;
  const auto own_line = options.security.peers->find(options.rank);
  const bool listens = !options.bind.empty() || (own_line && !own_line->address.empty());
  for (const TrustedPeer& line : options.security.peers->peers()) {
    if ((line.rank == options.rank) != line.holds(own)) {
      refuse("peers", fmt::format("rank {}", line.rank),
             fmt::format("this site is rank {} with the key {}, and its list must say so",
                         options.rank, own.text()));
    }
    const bool needed =
        line.rank != options.rank ? line.may_send || line.send_to : options.bind.empty();
    if (line.rank != options.rank && needed && line.address.empty() && !listens) {
      refuse("address", line.name,
             fmt::format("rank {} has no address, and this site listens nowhere: neither can dial",
                         line.rank));
    }
    for (const std::string& address : internal::split_addresses(line.address)) {
      if (needed && !internal::parse_host_port(address)) {
        refuse("address", address,
               fmt::format("rank {} has HOST:PORT where it listens, or nothing where it only dials",
                           line.rank));
      }
    }
  }
}

void check_options(const ChannelOptions& options) {
  if (options.security.peers == nullptr) {
    refuse("peers", "none", "channels are between those that a list names");
  }
  check_list(options);
  if (options.max_message_bytes == 0) {
    refuse("max_message_bytes", "0", "give the length of the longest message");
  }
  if (options.max_queued_bytes < options.max_message_bytes) {
    refuse("max_queued_bytes", fmt::to_string(options.max_queued_bytes),
           fmt::format("a message of {} bytes must fit", options.max_message_bytes));
  }
  if (options.timeout < kLeastTimeout) {
    refuse("timeout", fmt::format("{} ms", options.timeout.count()),
           fmt::format("sites are given {} ms at least", kLeastTimeout.count()));
  }
}

}  // namespace

Status Channels::hand_over(Rank peer, ChannelMessage message) {
  message.head.insert(message.head.end(), message.body.begin(), message.body.end());
  return send(peer, message.head);
}

Result<std::unique_ptr<Channels>> make_channels(const ChannelOptions& options) {
  check_options(options);
#if SOTTO_HAVE_ZMQ
  return internal::make_zmq_channels(options);
#else
  refuse("channels", "zmq", "this build has no ZeroMQ");
#endif
}

}  // namespace sotto
