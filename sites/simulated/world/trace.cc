#include "trace.h"

#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/xxh3.h>

namespace sotto::sites {

void TraceHash::add(const SimulatedSiteEvent& event) {
  buffer_.write(event.time);
  buffer_.write(static_cast<std::uint32_t>(event.kind));
  buffer_.write(event.site);
  buffer_.write(event.peer);
  buffer_.write(event.value);
  if (buffer_.bytes().size() >= kFlush) {
    digest_.update(buffer_.bytes());
    buffer_ = {};
  }
}

std::string TraceHash::finish_hex() {
  digest_.update(buffer_.bytes());
  buffer_ = {};
  return digest_.finish_hex();
}

std::uint64_t fingerprint(std::span<const std::byte> bytes) { return xxh3(bytes); }

}  // namespace sotto::sites

namespace sotto {

std::string to_string(const SimulatedSiteEvent& event) {
  using Kind = SimulatedSiteEvent::Kind;
  std::string when = fmt::format("{:>14.9f} s  site {:<3} ", to_seconds(event.time), event.site);
  switch (event.kind) {
    case Kind::began:
      return when + fmt::format("begins its life {}", event.value);
    case Kind::ended:
      return when + (event.value != 0 ? "ends in good order" : "dies");
    case Kind::stopped:
      return when + "stands still";
    case Kind::resumed:
      return when + "goes on";
    case Kind::fault:
      return when + fmt::format("fault: {}", fault_kind(static_cast<FaultKind>(event.value)).name) +
             (event.peer >= 0 ? fmt::format(" with {}", event.peer) : "");
    case Kind::fault_over:
      return when +
             fmt::format("is over: {}", fault_kind(static_cast<FaultKind>(event.value)).name);
    case Kind::up:
      return when + fmt::format("up: {}", event.peer);
    case Kind::down:
      return when + fmt::format("down: {}", event.peer);
    case Kind::sent:
      return when + fmt::format("sends to {} ({:016x})", event.peer, event.value);
    case Kind::received:
      return when + fmt::format("hears from {} ({} bytes)", event.peer, event.value);
    case Kind::committed:
      return when + fmt::format("has written its state ({:016x})", event.value);
    case Kind::finished:
      return when + fmt::format("has done {} rounds", event.value);
    case Kind::renewed:
      return when + fmt::format("begins anew as {:016x}", event.value);
  }
  return when;
}

}  // namespace sotto
