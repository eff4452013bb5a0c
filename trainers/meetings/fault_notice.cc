#include <sotto/trainers/meetings/fault_notice.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/text.h>
#include <sotto/comm/deadline.h>
#include <sotto/comm/run_keys.h>

#include "../internal/agreement/run_news.h"
#include "../internal/agreement/store_look.h"

namespace sotto {

namespace {

constexpr std::size_t kMostCause = 4'000;

/// No node gives up with an agreed end, or because another node's caller wanted a wait to end, and
/// runs have no queues of messages.
bool can_be_given_up_with(Fault fault) {
  switch (fault) {
    case Fault::malformed:
    case Fault::unexpected:
    case Fault::non_finite:
    case Fault::peer_lost:
    case Fault::deadline:
    case Fault::io:
    case Fault::budget:
      return true;
    case Fault::none:
    case Fault::ended:
    case Fault::stopped:
    case Fault::backlog:
      return false;
  }
  return false;  // a number that no kind has
}

Status read_cause(std::span<const std::byte> value) {
  ByteReader in(value);
  const auto fault = static_cast<Fault>(in.read<std::uint8_t>());
  const std::string message = in.read_string(kMostCause);
  return in.finished() && can_be_given_up_with(fault)
             ? Status(fault, message)
             : Status(Fault::malformed, "a node gave up and its reason cannot be read");
}

}  // namespace

void FaultNotice::give_up(const Status& given) {
  // The caller of this node wanted its wait to end; nobody wanted that of the others.
  std::string_view why = given.message();
  const std::string self = fmt::format("node {}: ", rank_);
  why.remove_prefix(why.starts_with(self) ? self.size() : 0);
  Status cause = given;
  if (given.fault() == Fault::stopped) {
    cause = {Fault::peer_lost, fmt::format("node {} was told to stop{}", rank_,
                                           why == kStopped ? "" : fmt::format(" ({})", why))};
  } else if (given.fault() == Fault::ended) {
    cause = {Fault::peer_lost, given.message()};
  }
  ByteBuffer value;
  value.write(static_cast<std::uint8_t>(cause.fault()));
  value.write_string(excerpt(cause.message(), kMostCause));
  if (store_.set(given_up_key(), value.bytes()).ok()) {  // else the others see a lost peer
    (void)internal::RunNews(store_).announce();
  }
}

Status FaultNotice::given_up() {
  const auto value = store_.get(given_up_key(), Deadline::after({}));
  return value.ok() ? read_cause(*value) : Status();
}

Status FaultNotice::given_up_or(const Status& cause) {
  const auto look = internal::look_for(store_, given_up_key());
  if (look.value) {
    return read_cause(*look.value);
  }
  if (look.answered) {
    give_up(cause);
  }
  return {};
}

}  // namespace sotto
