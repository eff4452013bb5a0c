#include "listening_socket.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <limits>
#include <vector>

#include <zmq.hpp>

#include "../../internal/address/tcp.h"

namespace sotto::internal {
namespace {

/// Attempts that the kernel holds until ZeroMQ takes them: a crowd that comes at once is in the
/// queue and out of it again before an attempt is repeated. ZeroMQ takes all of them before anybody
/// can look, so that they must leave descriptors to the rest of the process.
constexpr std::size_t kLongestQueue = 4096;
constexpr std::size_t kShortestQueue = 64;

std::size_t queue_length() {
  return std::clamp(descriptor_limit() / 16, kShortestQueue, kLongestQueue);
}

/// Offsets and values of a packet: the flags of TCP, whose header it begins with, and the header of
/// IP before it.
constexpr std::uint32_t kFlags = 13;
constexpr std::uint32_t kSynAndAck = 0x12;
constexpr std::uint32_t kSyn = 0x02;
constexpr auto kNetwork = static_cast<std::uint32_t>(SKF_NET_OFF);
constexpr std::uint32_t kSourceOfIpv4 = kNetwork + 12;
constexpr std::uint32_t kSourceOfIpv6 = kNetwork + 8;
constexpr std::uint32_t kEverything = 0xFFFFFFFF;

/// A program for the kernel's packet filter that gives each attempt to connect what the rule says.
/// Packets of connections pass: a connection inherits the program of the socket that accepted it.
std::vector<sock_filter> program_of(const DropRule& rule) {
  const std::uint32_t usual = rule.strangers ? kEverything : 0;
  const std::uint32_t other = rule.strangers ? 0 : kEverything;
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kFlags),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, kSynAndAck),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSyn, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, kEverything),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kNetwork),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 0, 1),
      BPF_STMT(BPF_JMP | BPF_JA, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSourceOfIpv4),
  };
  const std::size_t jump = program.size() - 2;
  for (const Source& source : rule.others) {
    if (!source.ipv6) {
      program.push_back(
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(source.prefix), 0, 1));
      program.push_back(BPF_STMT(BPF_RET | BPF_K, other));
    }
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, usual));
  program[jump].k = static_cast<std::uint32_t>(program.size() - jump - 1);
  for (const Source& source : rule.others) {
    if (source.ipv6) {
      const auto high = static_cast<std::uint32_t>(source.prefix >> 32U);
      program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSourceOfIpv6));
      program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 3));
      program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSourceOfIpv6 + 4));
      program.push_back(
          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(source.prefix), 0, 1));
      program.push_back(BPF_STMT(BPF_RET | BPF_K, other));
    }
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, usual));
  return program;
}

/// How many of the rule's sources fit into a program.
void shorten(DropRule& rule) {
  std::size_t left = BPF_MAXINSNS - 16;
  const auto last = std::ranges::find_if(rule.others, [&](const Source& source) {
    const std::size_t needed = source.ipv6 ? 5 : 2;
    const bool fits = needed <= left;
    left -= fits ? needed : 0;
    return !fits;
  });
  rule.others.erase(last, rule.others.end());
}

[[noreturn]] void fail(int socket, int error) {
  if (socket >= 0) {
    ::close(socket);
  }
  errno = error;
  throw zmq::error_t();
}

}  // namespace

std::size_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur
                                                 : std::numeric_limits<std::size_t>::max();
}

ListeningSocket::ListeningSocket(const std::string& endpoint) {
  const auto address = numeric_address(endpoint);
  if (address == nullptr) {
    fail(-1, EINVAL);
  }
  const int made =
      ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  const int on = 1;
  if (made < 0 || ::setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(made, address->ai_addr, address->ai_addrlen) != 0 ||
      ::listen(made, static_cast<int>(queue_length())) != 0) {
    fail(made, errno);
  }
  socket_ = made;
}

ListeningSocket::~ListeningSocket() { ::close(socket_); }

int ListeningSocket::share() const {
  const int other = ::fcntl(socket_, F_DUPFD_CLOEXEC, 0);
  if (other < 0) {
    throw zmq::error_t();
  }
  return other;
}

void ListeningSocket::pause(bool pause) {
  if (pause == paused_) {
    return;
  }
  // A filter that takes nothing of any packet. Connections that are there have none; new ones
  // would inherit it, but there are none while it stands.
  sock_filter nothing{BPF_RET | BPF_K, 0, 0, 0};
  const sock_fprog filter{1, &nothing};
  const int ignored = 0;
  const int done =
      pause ? ::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter)
            : ::setsockopt(socket_, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored);
  paused_ = done == 0 ? pause : paused_;  // a system that cannot do this goes on as before
}

void ListeningSocket::admit(const DropRule& rule) {
  if (rule == rule_) {
    return;
  }
  DropRule shortened = rule;
  shorten(shortened);
  auto program = program_of(shortened);
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  const int ignored = 0;
  const int done =
      rule == DropRule()
          ? ::setsockopt(socket_, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored)
          : ::setsockopt(socket_, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
  rule_ = done == 0 ? rule : rule_;
}

std::size_t ListeningSocket::queue_shortage() {
  std::ifstream file("/proc/sys/net/core/somaxconn");
  std::size_t most = 0;
  return file >> most && most < queue_length() ? most : 0;
}

}  // namespace sotto::internal
