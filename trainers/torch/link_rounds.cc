#include "link_rounds.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/trainers/launch/launcher.h>
#include <sotto/trainers/node_transport.h>

#include "distributed_run.h"

namespace sotto::torch {

LinkPlace settled(LinkPlace place) {
  if (place.nodes && *place.nodes < 1) {
    refuse("nodes", fmt::format("{}", *place.nodes), "a link has one node at least");
  }
  if (!place.rank) {
    const LaunchedNode launched = launched_node(
        "rank",
        place.nodes ? fmt::format("set it to 0 to {}", *place.nodes - 1) : "set it and the nodes",
        place.nodes.value_or(0));
    place.rank = launched.rank;
    place.nodes = launched.nodes;
    if (place.rendezvous.empty()) {
      place.rendezvous = launched.rendezvous;
    }
  }
  if (!place.nodes) {
    refuse("nodes", "none", "say how many nodes the link has, where the rank is given");
  }
  if (*place.rank < 0 || *place.rank >= *place.nodes) {
    refuse("rank", fmt::format("{}", *place.rank),
           fmt::format("the link has the nodes 0 to {}", *place.nodes - 1));
  }
  if (!place.store) {
    place.store = make_store(place.rendezvous, *place.rank,
                             {.insecure = place.insecure,
                              .security = place.security,
                              .known_by = Deadline::after(place.timeout, &place.interrupted)});
  }
  return place;
}

LinkRounds::LinkRounds(Algorithm& algorithm, LinkPlace place, std::uint64_t run_id)
    : algorithm_(&algorithm), place_(std::move(place)), run_id_(run_id) {
  check_transport(place_.transport, options());
}

TransportOptions LinkRounds::options() const {
  TransportOptions made = transport_options(algorithm_->peers(), *place_.rank, *place_.nodes);
  made.run_id = run_id_;
  made.store = place_.store;
  made.bind = place_.bind;
  made.insecure = place_.insecure;
  made.security = place_.security;
  made.connect_timeout = place_.timeout;
  made.stop = place_.interrupted;
  return made;
}

void LinkRounds::connect() {
  if (driver_) {
    return;
  }
  require_ok(failed_);
  session_ =
      make_session(place_.store, *place_.rank, *place_.nodes, place_.timeout, place_.interrupted);
  failed_ = session_->enter();
  require_ok(failed_);
  auto made = make_transport(place_.transport, options());
  failed_ = made.status();
  require_ok(failed_);
  transport_ = std::move(*made);
  // A round is one exchange, for which the caller waits.
  driver_ = std::make_unique<Driver>(*algorithm_, *transport_,
                                     DriverOptions{.rank = *place_.rank,
                                                   .overlap = false,
                                                   .timeout = place_.timeout,
                                                   .interrupted = place_.interrupted});
}

void LinkRounds::carry(std::span<const float> input) {
  connect();
  Status status = driver_->begin_round();
  if (status.ok()) {
    status = driver_->gradient_ready(input);
  }
  if (!status.ok()) {
    failed_ = status;
    sent_before_ = bytes_sent();
    driver_.reset();
    transport_.reset();
  }
  require_ok(status);
}

std::uint64_t LinkRounds::bytes_sent() const {
  std::uint64_t bytes = sent_before_;
  if (driver_) {
    for (const LinkTraffic& traffic : driver_->traffic()) {
      bytes += traffic.bytes;
    }
  }
  return bytes;
}

::torch::Tensor tensor_of(std::span<const float> values, std::size_t width) {
  const auto columns = static_cast<std::int64_t>(width);
  const auto rows = static_cast<std::int64_t>(values.size() / width);
  ::torch::Tensor out = ::torch::empty({rows, columns});
  std::copy(values.begin(), values.end(), out.data_ptr<float>());
  return out;
}

std::vector<float> floats_of(const ::torch::Tensor& rows) {
  const auto here = rows.detach().to(::torch::kCPU, ::torch::kFloat32).contiguous();
  const auto* const values = here.data_ptr<float>();
  return {values, values + here.numel()};
}

}  // namespace sotto::torch
