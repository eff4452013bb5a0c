#include <sotto/optim/exchange/mailbox.h>

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace sotto {
namespace {

/// The edge of `peer` among `edges`, which are sorted by peer; their number if there is none.
std::size_t edge_of(std::span<const Edge> edges, Rank peer) {
  const auto at = std::lower_bound(edges.begin(), edges.end(), peer,
                                   [](const Edge& edge, Rank rank) { return edge.peer < rank; });
  return at == edges.end() || at->peer != peer ? edges.size()
                                               : static_cast<std::size_t>(at - edges.begin());
}

}  // namespace

Mailbox::Mailbox(const LocalNode& node, std::size_t senders, std::size_t payload_bytes,
                 std::size_t parcels)
    : Mailbox(node, senders, std::vector<std::size_t>(parcels, payload_bytes)) {}

Mailbox::Mailbox(const LocalNode& node, std::size_t senders,
                 const std::vector<std::size_t>& parcel_bytes)
    : node_(node) {
  outgoing_.reserve(parcel_bytes.size());
  for (const std::size_t bytes : parcel_bytes) {
    outgoing_.emplace_back(node, kFrameHeaderBytes + bytes);
    max_frame_bytes_ = std::max(max_frame_bytes_, kFrameHeaderBytes + bytes);
  }
  slots_.reserve(senders);
  for (std::size_t sender = 0; sender < senders; ++sender) {
    slots_.push_back({.frame = {node, max_frame_bytes_}, .payload = {}});
  }
}

std::span<std::byte> Mailbox::outgoing(std::size_t parcel) {
  check(!open_, "a frame under way is not overwritten");
  return outgoing_[parcel].bytes.subspan(kFrameHeaderBytes);
}

void Mailbox::post(const ExchangePlan& plan, std::size_t payload_bytes, Exchange& out) {
  open_exchange(plan, out);
  sent_bytes_ = payload_bytes;
  const auto frame = seal(outgoing_.front().bytes);
  for (const Edge& edge : plan.to) {
    out.sends.push_back({edge.peer, frame});
  }
}

void Mailbox::post_each(const ExchangePlan& plan, std::span<const Parcel> parcels, Exchange& out) {
  check(parcels.size() == plan.to.size(), "each peer is sent a parcel");
  open_exchange(plan, out);
  for (std::size_t i = 0; i < parcels.size(); ++i) {
    out.sends.push_back({plan.to[i].peer, seal(outgoing_[i].bytes, parcels[i])});
  }
}

void Mailbox::post_chosen(const ExchangePlan& plan, std::span<const Parcel> parcels,
                          std::span<const std::size_t> choice, Exchange& out) {
  check(choice.size() == plan.to.size(), "each peer is sent a parcel");
  open_exchange(plan, out);
  sent_bytes_ = parcels.front().payload_bytes;
  for (std::size_t k = 0; k < parcels.size(); ++k) {
    seal(outgoing_[k].bytes, parcels[k]);
  }
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const std::size_t bytes = kFrameHeaderBytes + parcels[choice[i]].payload_bytes;
    out.sends.push_back({plan.to[i].peer, outgoing_[choice[i]].bytes.first(bytes)});
  }
}

void Mailbox::open_exchange(const ExchangePlan& plan, Exchange& out) {
  check(!open_, "one exchange at a time");
  check(plan.from.size() <= slots_.size(), "a mailbox has a slot for every sender");
  plan_ = plan;
  settings_ = node_.terms().stamp;
  open_ = true;
  out.tag = plan.tag;
  out.sends.clear();
  out.receives.clear();
  for (std::size_t edge = 0; edge < plan.from.size(); ++edge) {
    slots_[edge].arrived = false;
    out.receives.push_back({plan.from[edge].peer, slots_[edge].frame.bytes});
  }
}

std::span<const std::byte> Mailbox::seal(std::span<std::byte> frame) const {
  return seal(frame, {.elements = plan_.elements_out, .payload_bytes = sent_bytes_});
}

std::span<const std::byte> Mailbox::seal(std::span<std::byte> frame, const Parcel& parcel) const {
  return seal_frame({.run_id = node_.run_id(),
                     .algorithm = node_.info().wire_id,
                     .compressor = parcel.compressor.value_or(plan_.compressor),
                     .round = plan_.tag.round,
                     .sender = node_.rank(),
                     .settings = settings_,
                     .phase = plan_.tag.phase,
                     .bucket = plan_.tag.bucket,
                     .elements = parcel.elements,
                     .payload_bytes = parcel.payload_bytes},
                    frame);
}

std::span<const std::byte> Mailbox::sent() const {
  return outgoing_.front().bytes.subspan(kFrameHeaderBytes, sent_bytes_);
}

Result<std::size_t> Mailbox::accept(Rank from, std::span<const std::byte> frame) {
  if (!open_) {
    return refusal(Fault::unexpected, from, "no exchange is under way");
  }
  const std::size_t edge = edge_of(plan_.from, from);
  if (edge == plan_.from.size()) {
    return refusal(Fault::unexpected, from, "this peer has nothing to send in this round");
  }
  Slot& slot = slots_[edge];
  if (slot.arrived) {
    return refusal(Fault::unexpected, from, "its frame is here already");
  }
  const auto room = slot.frame.bytes;
  if (frame.size() > room.size()) {
    return refusal(Fault::malformed, from,
                   fmt::format("{} bytes where {} fit", frame.size(), room.size()));
  }
  const auto view = parse_frame(frame);
  if (!view) {
    return refusal(view.status().fault(), from, view.status().message());
  }
  if (const std::string why = objection(view->header, edge); !why.empty()) {
    return refusal(Fault::unexpected, from, why);
  }
  if (const Status agreed =
          node_.terms().compare(from, plan_.tag.round, view->header.settings, settings_);
      !agreed) {
    return refusal(agreed.fault(), from, agreed.message());
  }
  if (frame.data() != room.data()) {
    std::memmove(room.data(), frame.data(), frame.size());
  }
  slot.payload = room.subspan(kFrameHeaderBytes, view->payload.size());
  slot.arrived = true;
  return edge;
}

std::string Mailbox::objection(const FrameHeader& header, std::size_t edge) const {
  std::string why;
  const auto expect = [&why](std::string_view field, auto found, auto due) {
    if (why.empty() && found != due) {
      why = fmt::format("{} {} where {} is due", field, found, due);
    }
  };
  expect("run id", header.run_id, node_.run_id());
  expect("sender", header.sender, plan_.from[edge].peer);
  expect("algorithm id", header.algorithm, node_.info().wire_id);
  expect("compressor id", header.compressor, plan_.compressor_from(edge));
  expect("round", header.round, plan_.tag.round);
  expect("phase", header.phase, plan_.tag.phase);
  expect("bucket", header.bucket, plan_.tag.bucket);
  expect("element count", header.elements, std::uint64_t{plan_.elements_from(edge)});
  if (why.empty() && !is_stamp(header.settings)) {
    why = fmt::format("settings {:#x} are the stamp of none", header.settings);
  }
  return why;
}

Status Mailbox::refuse(std::size_t edge, const Status& why) {
  slots_[edge].arrived = false;
  return refusal(why.fault(), plan_.from[edge].peer, why.message());
}

Status Mailbox::refusal(Fault fault, Rank from, std::string_view why) {
  ++bad_frames_;
  return {fault, fmt::format("node {}, round {}: frame from node {} is refused: {}", node_.rank(),
                             open_ ? plan_.tag.round : node_.round(), from, why)};
}

Status Mailbox::require_complete() const {
  check(open_, "an exchange is under way when it is done");
  std::string missing;
  for (std::size_t edge = 0; edge < plan_.from.size(); ++edge) {
    if (!slots_[edge].arrived) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", plan_.from[edge].peer);
    }
  }
  if (missing.empty()) {
    return {};
  }
  return {Fault::unexpected,
          fmt::format("node {}, round {}: the exchange cannot be done without frames from {}",
                      node_.rank(), plan_.tag.round, missing)};
}

void Mailbox::close() {
  check(open_ && require_complete().ok(), "an exchange is closed once all frames are there");
  open_ = false;
}

}  // namespace sotto
