#include "connection_limiter.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "../../internal/address/tcp.h"

namespace sotto::internal {
namespace {

std::uint64_t big_endian(const std::uint8_t* bytes, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i) {
    value = value << 8U | bytes[i];
  }
  return value;
}

}  // namespace

std::optional<Source> source_of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in ipv4{};
    std::memcpy(&ipv4, &address, sizeof ipv4);
    return Source{false, ntohl(ipv4.sin_addr.s_addr)};
  }
  if (address.ss_family != AF_INET6) {
    return std::nullopt;
  }
  sockaddr_in6 ipv6{};
  std::memcpy(&ipv6, &address, sizeof ipv6);
  const std::uint8_t* const bytes = &ipv6.sin6_addr.s6_addr[0];
  if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr) != 0) {
    return Source{false, big_endian(bytes + 12, 4)};
  }
  return Source{true, big_endian(bytes, 8)};
}

std::optional<Source> source_of(int connection) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  return ::getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) == 0
             ? source_of(address)
             : std::nullopt;
}

std::optional<Source> source_of_endpoint(const std::string& endpoint) {
  const auto address = numeric_address(endpoint);
  if (address == nullptr) {
    return std::nullopt;
  }
  sockaddr_storage storage{};
  std::memcpy(&storage, address->ai_addr, address->ai_addrlen);
  return source_of(storage);
}

void ConnectionLimiter::expect(std::set<Source> listed) {
  while (listed.size() > limits_.sources) {
    listed.erase(std::prev(listed.end()));
  }
  listed_ = std::move(listed);
}

void ConnectionLimiter::begin_window(Time now) {
  if (now - window_ >= kWindow) {
    window_ = now;
    lately_.clear();
    strangers_lately_ = 0;
  }
}

void ConnectionLimiter::arrived(int connection, const std::optional<Source>& source, Time now) {
  forget(connection);
  begin_window(now);
  const Source from = source.value_or(Source{});
  visitors_[connection] = {from, ++arrivals_};
  queues_[from].emplace(arrivals_, connection);
  ++waiting_;
  ++lately_[from];
  strangers_lately_ += of_peer(from) ? 0U : 1U;
}

void ConnectionLimiter::forget(int connection) {
  const auto visitor = visitors_.find(connection);
  if (visitor == visitors_.end()) {
    return;
  }
  const auto queue = queues_.find(visitor->second.source);
  queue->second.erase(visitor->second.number);
  if (queue->second.empty()) {
    queues_.erase(queue);
  }
  visitors_.erase(visitor);
  --waiting_;
}

void ConnectionLimiter::proved(int connection, std::string_view key) {
  const auto visitor = visitors_.find(connection);
  if (visitor == visitors_.end()) {
    return;
  }
  if (by_key_.size() < limits_.sources || by_key_.contains(std::string(key))) {
    by_key_[std::string(key)] = visitor->second.source;
    seen_.clear();
    for (const auto& [owner, source] : by_key_) {
      seen_.insert(source);
    }
  }
  forget(connection);
}

void ConnectionLimiter::ended(int connection) {
  left_ += visitors_.contains(connection) ? 1U : 0U;
  forget(connection);
}

/// Connections of a source that take room of others.
std::size_t ConnectionLimiter::counted(const Source& source, const Queue& queue) const {
  const std::size_t own = of_peer(source) ? limits_.each_peer : 0;
  return queue.size() - std::min(queue.size(), own);
}

std::vector<int> ConnectionLimiter::crowded() {
  std::vector<int> named;
  std::size_t counts = 0;
  for (const auto& [source, queue] : queues_) {
    counts += counted(source, queue);
  }
  for (; counts > limits_.strangers; --counts) {
    const auto fullest =
        std::max_element(queues_.begin(), queues_.end(), [this](const auto& a, const auto& b) {
          const auto of_a = counted(a.first, a.second);
          const auto of_b = counted(b.first, b.second);
          return of_a != of_b ? of_a < of_b : a.second.begin()->first > b.second.begin()->first;
        });
    const int oldest = fullest->second.begin()->second;
    forget(oldest);
    named.push_back(oldest);
    ++cut_;
  }
  return named;
}

DropRule ConnectionLimiter::rule(Time now) {
  begin_window(now);
  DropRule rule{.strangers = strangers_lately_ < limits_.stranger_arrivals, .others = {}};
  if (rule.strangers) {
    for (const auto& [source, arrivals] : lately_) {
      if (arrivals >= limits_.source_arrivals) {
        rule.others.push_back(source);
      }
    }
    return rule;
  }
  std::ranges::set_union(listed_, seen_, std::back_inserter(rule.others));
  std::erase_if(rule.others, [this](const Source& source) {
    const auto found = lately_.find(source);
    return found != lately_.end() && found->second >= limits_.source_arrivals;
  });
  return rule;
}

std::optional<ConnectionLimiter::Time> ConnectionLimiter::next_change() const {
  const bool busy = strangers_lately_ >= limits_.stranger_arrivals ||
                    std::ranges::any_of(lately_, [this](const auto& entry) {
                      return entry.second >= limits_.source_arrivals;
                    });
  return busy ? std::optional(window_ + kWindow) : std::nullopt;
}

}  // namespace sotto::internal
