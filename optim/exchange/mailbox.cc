#include <sotto/optim/exchange/mailbox.h>

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/format.h>

namespace sotto {
Mailbox::Mailbox(const LocalNode& node, std::size_t senders, std::size_t payload_bytes,
                 std::size_t parcels)
    : Mailbox(node, senders, std::vector<std::size_t>(parcels, payload_bytes)) {}

Mailbox::Mailbox(const LocalNode& node, std::size_t senders,
                 const std::vector<std::size_t>& parcel_bytes, FrameRoom* room)
    : node_(node), room_(room) {
  outgoing_.reserve(parcel_bytes.size());
  for (const std::size_t bytes : parcel_bytes) {
    outgoing_.push_back(
        make_frame(FrameRoom::Way::out, outgoing_.size(), kFrameHeaderBytes + bytes));
    max_frame_bytes_ = std::max(max_frame_bytes_, kFrameHeaderBytes + bytes);
  }
  slots_.reserve(senders);
  due_.receives.reserve(senders);
  for (std::size_t sender = 0; sender < senders; ++sender) {
    slots_.push_back(
        {.frame = make_frame(FrameRoom::Way::in, sender, max_frame_bytes_), .payload = {}});
  }
}

void Mailbox::share_incoming(FrameRoom* room) {
  if (room == nullptr) {
    return;
  }
  for (std::size_t sender = 0; sender < slots_.size(); ++sender) {
    Frame& frame = slots_[sender].frame;
    frame = shared_frame(*room, FrameRoom::Way::in, sender, frame.bytes.size());
  }
}

void Mailbox::share_outgoing(FrameRoom* room) {
  for (std::size_t number = 0; room != nullptr && number < outgoing_.size(); ++number) {
    Frame& frame = outgoing_[number];
    frame = shared_frame(*room, FrameRoom::Way::out, number, frame.bytes.size());
  }
}

Mailbox::Frame Mailbox::make_frame(FrameRoom::Way way, std::size_t number,
                                   std::size_t length) const {
  return room_ == nullptr ? Frame(node_.frame_memory(length), length)
                          : shared_frame(*room_, way, number, length);
}

std::span<std::byte> Mailbox::outgoing(std::size_t parcel) {
  check(!open_, "a frame under way is not overwritten");
  return outgoing_[parcel].bytes.subspan(kFrameHeaderBytes);
}

void Mailbox::post(const ExchangePlan& plan, std::size_t payload_bytes) {
  open_exchange(plan);
  sent_bytes_ = payload_bytes;
  const auto frame = seal(outgoing_.front().bytes);
  for (const Edge& edge : plan.to) {
    due_.sends.push_back({edge.peer, frame});
  }
}

void Mailbox::post_each(const ExchangePlan& plan, std::span<const Parcel> parcels) {
  check(parcels.size() == plan.to.size(), "each peer is sent a parcel");
  open_exchange(plan);
  for (std::size_t i = 0; i < parcels.size(); ++i) {
    due_.sends.push_back({plan.to[i].peer, seal(outgoing_[i].bytes, parcels[i])});
  }
}

void Mailbox::post_chosen(const ExchangePlan& plan, std::span<const Parcel> parcels,
                          std::span<const std::size_t> choice) {
  check(choice.size() == plan.to.size(), "each peer is sent a parcel");
  open_exchange(plan);
  sent_bytes_ = parcels.front().payload_bytes;
  for (std::size_t k = 0; k < parcels.size(); ++k) {
    seal(outgoing_[k].bytes, parcels[k]);
  }
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const std::size_t bytes = kFrameHeaderBytes + parcels[choice[i]].payload_bytes;
    due_.sends.push_back({plan.to[i].peer, outgoing_[choice[i]].bytes.first(bytes)});
  }
}

void Mailbox::open_exchange(const ExchangePlan& plan) {
  check(!open_, "one exchange at a time");
  check(plan.from.size() <= slots_.size(), "a mailbox has a slot for every sender");
  plan_ = plan;
  settings_ = node_.terms().stamp;
  if (room_ != nullptr) {
    room_->open();
  }
  open_ = true;
  taken_ = false;
  due_.tag = plan.tag;
  due_.sends.clear();
  due_.receives.clear();
  for (std::size_t edge = 0; edge < plan.from.size(); ++edge) {
    slots_[edge].arrived = false;
    due_.receives.push_back({plan.from[edge].peer, slots_[edge].frame.bytes});
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

bool Mailbox::next_exchange(Exchange& out) {
  if (taken_) {
    return false;
  }
  taken_ = true;
  out.tag = due_.tag;
  out.sends.assign(due_.sends.begin(), due_.sends.end());
  out.receives.assign(due_.receives.begin(), due_.receives.end());
  return true;
}

Status Mailbox::accept(const Exchange& exchange, const Judge& judge) {
  if (!open_ || !taken_ || exchange.tag != plan_.tag ||
      exchange.receives.size() != plan_.from.size()) {
    return node_.fault(Fault::unexpected, "no such exchange is under way");
  }
  if (Status status = require_frames(exchange); !status.ok()) {
    return status;
  }
  for (std::size_t edge = 0; edge < plan_.from.size(); ++edge) {
    if (slots_[edge].arrived) {
      continue;
    }
    if (Status status = accept(edge, exchange.receives[edge].frame()); !status.ok()) {
      return status;
    }
    if (Status status = judge ? judge(edge) : Status(); !status.ok()) {
      return refuse(edge, status);
    }
  }
  return {};
}

Status Mailbox::accept(std::size_t edge, std::span<const std::byte> frame) {
  const Rank from = plan_.from[edge].peer;
  Slot& slot = slots_[edge];
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
      !agreed.ok()) {
    return refusal(agreed.fault(), from, agreed.message());
  }
  if (frame.data() != room.data()) {
    std::memmove(room.data(), frame.data(), frame.size());
  }
  slot.payload = room.subspan(kFrameHeaderBytes, view->payload.size());
  slot.arrived = true;
  return {};
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
  const std::uint64_t elements = plan_.elements_from(edge);
  if (!plan_.at_most) {
    expect("element count", header.elements, elements);
  } else if (why.empty() && header.elements > elements) {
    why = fmt::format("element count {} where {} at most are due", header.elements, elements);
  }
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
                             plan_.tag.round, from, why)};
}

Status Mailbox::require_frames(const Exchange& exchange) const {
  std::string missing;
  for (std::size_t edge = 0; edge < plan_.from.size(); ++edge) {
    if (!slots_[edge].arrived && exchange.receives[edge].bytes == 0) {
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
  check(open_ && std::all_of(slots_.begin(),
                             slots_.begin() + static_cast<std::ptrdiff_t>(plan_.from.size()),
                             [](const Slot& slot) { return slot.arrived; }),
        "an exchange is closed once all frames are there");
  if (room_ != nullptr) {
    room_->close();
  }
  open_ = false;
}

}  // namespace sotto
