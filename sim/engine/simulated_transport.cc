#include "simulated_transport.h"

#include <algorithm>
#include <limits>

#include <sotto/base/check.h>
#include <sotto/base/frame.h>

namespace sotto {

SimulatedTransport::SimulatedTransport(Network& network, std::size_t nodes, const Options& options)
    : network_(network), options_(options), boxes_(nodes) {}

void SimulatedTransport::reserve(std::size_t lines) {
  lines_.reserve(lines);
  numbers_.reserve(lines);
  network_.reserve(lines);
}

void SimulatedTransport::connect(Rank node, std::span<const Rank> to, std::size_t ahead,
                                 std::size_t frame_bytes) {
  check(index(node) == frame_bytes_.size() && std::ranges::is_sorted(to),
        "nodes are connected in the order of ranks, to peers that are sorted");
  frame_bytes_.push_back(frame_bytes);
  Box& box = boxes_[index(node)];
  box.out = static_cast<ConnectionId>(lines_.size());
  box.receivers = static_cast<std::uint32_t>(to.size());
  for (const Rank peer : to) {
    const ConnectionId line = network_.connect(node, peer);
    check(line == lines_.size(), "lines are numbered as connections");
    Line& opened = lines_.emplace_back();
    numbers_.push_back(line);
    opened.edge = {.from = node, .to = peer};
    opened.ahead = static_cast<std::uint32_t>(ahead);
    ++boxes_[index(peer)].senders;
  }
}

void SimulatedTransport::connected() {
  std::uint32_t lines = 0;
  for (Box& box : boxes_) {
    box.in = lines;
    lines += box.senders;
    box.senders = 0;
  }
  into_.resize(lines);
  for (ConnectionId line = 0; line < lines; ++line) {
    Box& box = boxes_[index(to(line))];
    into_[box.in + box.senders++] = line;
  }
  if (options_.transport.on_demand) {
    for (Line& line : lines_) {
      line.receives = std::make_unique<Receives>(ReceiveForecast::rooms_for(
          frame_bytes_[index(line.edge.from)], boxes_[index(line.edge.to)].senders));
    }
  }
  std::vector<std::size_t>().swap(frame_bytes_);
}

std::optional<ConnectionId> SimulatedTransport::line_to(Rank node, Rank peer,
                                                        std::size_t place) const {
  const auto out = lines_from(node);
  if (place < out.size() && to(out[place]) == peer) {
    return out[place];
  }
  const auto at = std::ranges::lower_bound(out, peer, {}, [this](auto line) { return to(line); });
  return at != out.end() && to(*at) == peer ? std::optional(*at) : std::nullopt;
}

std::optional<ConnectionId> SimulatedTransport::line_from(Rank node, Rank peer,
                                                          std::size_t place) const {
  const auto in = lines_to(node);
  if (place < in.size() && from(in[place]) == peer) {
    return in[place];
  }
  const auto at = std::ranges::lower_bound(in, peer, {}, [this](auto line) { return from(line); });
  return at != in.end() && from(*at) == peer ? std::optional(*at) : std::nullopt;
}

Rank SimulatedTransport::lost_peer(Rank node, const Exchange& exchange) const {
  if (!anyone_gone_) {
    return -1;
  }
  for (const Send& send : exchange.sends) {
    const auto line = line_to(node, send.to);
    if (line && lines_[*line].receiver_gone) {
      return send.to;
    }
  }
  for (const Receive& receive : exchange.receives) {
    const auto at = line_from(node, receive.from);
    if (!at) {
      continue;
    }
    const Line& line = lines_[*at];
    const bool here = std::any_of(
        line.parcels.begin(), line.parcels.end(),
        [&](const Parcel& parcel) { return parcel.delivered && parcel.tag == exchange.tag; });
    if (line.sender_gone && !here) {
      return receive.from;
    }
  }
  return -1;
}

SimulatedTransport::Open* SimulatedTransport::find(Rank node, const ExchangeTag& tag) {
  Box& box = boxes_[index(node)];
  if (box.used == 0) {
    return nullptr;
  }
  for (Open& open : box.open) {
    if (open.used && open.exchange.tag == tag) {
      return &open;
    }
  }
  return nullptr;
}

const SimulatedTransport::Open* SimulatedTransport::complete(Rank node) const {
  const Box& box = boxes_[index(node)];
  if (box.used == 0) {
    return nullptr;
  }
  const Open* first = nullptr;
  for (const Open& open : box.open) {
    if (open.complete() && (first == nullptr || open.number < first->number)) {
      first = &open;
    }
  }
  return first;
}

void SimulatedTransport::close(Rank node, const Open& exchange) {
  Box& box = boxes_[index(node)];
  box.open[static_cast<std::size_t>(&exchange - box.open.begin())].used = false;
  --box.used;
}

void SimulatedTransport::fill_receives(Rank node, const Open& exchange) {
  Box& box = boxes_[index(node)];
  Open& open = box.open[static_cast<std::size_t>(&exchange - box.open.begin())];
  for (std::size_t i = 0; i < open.frames.size(); ++i) {
    std::ranges::copy(*open.frames[i], open.exchange.receives[i].buffer.begin());
    give_back(open.frames[i]);
  }
  open.frames.clear();
}

std::vector<SimulatedTransport::CopiedFrame> SimulatedTransport::detach(Exchange& exchange) {
  std::vector<CopiedFrame> copies;
  std::span<const std::byte> copied;
  for (Send& send : exchange.sends) {
    if (!options_.payload) {
      break;
    }
    if (send.frame.data() != copied.data() || send.frame.size() != copied.size()) {
      copied = send.frame;
      copies.push_back(copy(copied));
    }
    send.frame = *copies.back();
  }
  return copies;
}

void SimulatedTransport::give_back(CopiedFrame& frame) {
  if (frame != nullptr && frame.use_count() == 1) {
    spare_.push_back(std::move(frame));
  }
  frame.reset();
}

void SimulatedTransport::close(Rank node) {
  Box& box = boxes_[index(node)];
  for (Open& open : box.open) {
    open.used = false;
    for (CopiedFrame& frame : open.frames) {
      give_back(frame);
    }
    open.frames.clear();
  }
  box.used = 0;
}

void SimulatedTransport::post(Rank node, Exchange& exchange, std::vector<Rank>* released) {
  Box& box = boxes_[index(node)];
  Open* const unused =
      std::find_if(box.open.begin(), box.open.end(), [](const Open& o) { return !o.used; });
  Open& open = unused == box.open.end() ? box.open.emplace_back() : *unused;
  open.used = true;
  ++box.used;
  open.number = ++posted_;
  // Field by field: to load a tag that was just written so whole would wait for it.
  open.exchange.tag.round = exchange.tag.round;
  open.exchange.tag.phase = exchange.tag.phase;
  open.exchange.tag.bucket = exchange.tag.bucket;
  open.exchange.sends.swap(exchange.sends);
  open.exchange.receives.swap(exchange.receives);
  for (Receive& receive : open.exchange.receives) {
    receive.bytes = 0;
  }
  for (std::size_t i = 0; options_.payload && i < open.exchange.receives.size(); ++i) {
    open.frames.emplace_back();
  }
  open.elements = 0;
  open.awaited = static_cast<std::uint32_t>(open.exchange.receives.size());
  open.unsent = static_cast<std::uint32_t>(open.exchange.sends.size());
  CopiedFrame copied;
  std::span<const std::byte> copied_from;
  for (std::size_t i = 0; i < open.exchange.sends.size(); ++i) {
    const Send& send = open.exchange.sends[i];
    const auto at = line_to(node, send.to, i);
    check(at.has_value(), "an algorithm sends only to its peers");
    Line& line = lines_[*at];
    Parcel& parcel = line.parcels.emplace_back();
    parcel.tag = open.exchange.tag;
    parcel.bytes = send.frame.size();
    parcel.elements = announced_elements(send.frame);
    if (options_.payload) {
      const bool same = copied != nullptr && send.frame.data() == copied_from.data() &&
                        send.frame.size() == copied_from.size();
      copied = same ? copied : copy(send.frame);
      copied_from = send.frame;
      parcel.frame = copied;
    }
    launch(*at);
  }
  for (std::size_t i = 0; i < open.exchange.receives.size(); ++i) {
    const Receive& receive = open.exchange.receives[i];
    const auto at = line_from(node, receive.from, i);
    check(at.has_value(), "an algorithm hears only its peers");
    Line& line = lines_[*at];
    if (line.landed == 0) {
      continue;
    }
    Parcel* const parcel =
        std::find_if(line.parcels.begin(), line.parcels.end(),
                     [&](const Parcel& p) { return p.delivered && p.tag == open.exchange.tag; });
    if (parcel != line.parcels.end() && take(*at, parcel, open) && hand_over(line)) {
      released->push_back(receive.from);
    }
  }
}

SimulatedTransport::CopiedFrame SimulatedTransport::copy(std::span<const std::byte> frame) {
  CopiedFrame made;
  if (spare_.empty()) {
    made = std::make_shared<std::vector<std::byte>>();
  } else {
    made = std::move(spare_.back());
    spare_.pop_back();
  }
  made->assign(frame.begin(), frame.end());
  return made;
}

void SimulatedTransport::announce(ConnectionId id, const ExchangeTag& tag) {
  Line& line = lines_[id];
  Receives& receives = *line.receives;
  if (std::ranges::find(receives.in_rooms, tag) == receives.in_rooms.end()) {
    send_notice(id, tag);
  } else if (std::ranges::any_of(line.parcels,
                                 [&](const Parcel& p) { return p.delivered && p.tag == tag; })) {
    empty_room(id, tag);
  }
  receives.forecast.post(tag);
  foretell(id);
}

void SimulatedTransport::empty_room(ConnectionId id, const ExchangeTag& tag) {
  Receives& receives = *lines_[id].receives;
  if (std::erase(receives.in_rooms, tag) > 0) {
    receives.forecast.vacate();
    foretell(id);
  }
}

void SimulatedTransport::foretell(ConnectionId id) {
  Receives& receives = *lines_[id].receives;
  while (const auto next = receives.forecast.next()) {
    receives.in_rooms.push_back(*next);
    send_notice(id, *next);
  }
}

void SimulatedTransport::send_notice(ConnectionId id, const ExchangeTag& tag) {
  lines_[id].receives->told.push_back(tag);
  network_.notify_back(id);
  notices_.push_back({plus(network_.now(), network_.latency_back(id)), id});
}

void SimulatedTransport::hear(ConnectionId id) {
  Line& line = lines_[id];
  if (line.receives) {
    auto& told = line.receives->told;
    line.receives->demanded.push_back(told.front());
    told.erase(told.begin());
  } else {
    line.notice_scheduled = false;
  }
}

void SimulatedTransport::launch(ConnectionId id) {
  Line& line = lines_[id];
  for (Parcel& parcel : line.parcels) {
    if (parcel.launched) {
      continue;
    }
    if (line.receives) {
      auto& demanded = line.receives->demanded;
      const auto known = std::ranges::find(demanded, parcel.tag);
      if (known == demanded.end()) {
        continue;
      }
      demanded.erase(known);
    } else if (!roomy(id)) {
      break;
    }
    parcel.launched = true;
    check(line.launches != std::numeric_limits<std::uint32_t>::max(),
          "a line carries fewer than 2³² frames");
    parcel.number = line.launches++;
    ++line.edge.frames;
    line.edge.bytes += parcel.bytes;
    ++boxes_[index(line.edge.from)].under_way;
    ++boxes_[index(line.edge.to)].under_way;
    network_.send(id, parcel.bytes);
  }
  hand_over(line);
}

ConnectionId SimulatedTransport::line(Rank from, Rank to) const {
  const auto line = line_to(from, to);
  check(line.has_value(), "an algorithm hears only its peers");
  return *line;
}

SimulatedTransport::Effects SimulatedTransport::deliver(const Arrival& arrival) {
  Line& line = lines_[arrival.connection];
  --boxes_[index(line.edge.from)].under_way;
  --boxes_[index(line.edge.to)].under_way;
  // In the order in which they were launched, which is not always that of their posts.
  Parcel* const parcel = std::ranges::min_element(line.parcels, {}, [](const Parcel& p) {
    // One more than the largest number of a parcel that is under way.
    return p.launched && !p.delivered ? std::uint64_t{p.number} : std::uint64_t{1} << 32U;
  });
  check(parcel != line.parcels.end() && parcel->launched && !parcel->delivered,
        "what is delivered was sent");
  parcel->delivered = true;
  ++line.landed;
  Open* const open = find(line.edge.to, parcel->tag);
  const bool delivered = open != nullptr && take(arrival.connection, parcel, *open);
  const bool receiver_done = delivered && open->complete();
  return {.delivered = delivered, .receiver_done = receiver_done, .sender_done = hand_over(line)};
}

bool SimulatedTransport::take(ConnectionId id, Parcel* parcel, Open& exchange) {
  Line& line = lines_[id];
  auto& receives = exchange.exchange.receives;
  const auto receive = std::lower_bound(receives.begin(), receives.end(), line.edge.from,
                                        [](const Receive& r, Rank rank) { return r.from < rank; });
  if (receive == receives.end() || receive->from != line.edge.from) {
    return false;
  }
  if (receive->bytes != 0) {
    return false;
  }
  check(parcel->bytes <= receive->buffer.size(), "a receive has room for the frame that is due");
  receive->bytes = parcel->bytes;
  exchange.elements += static_cast<double>(parcel->elements);
  --exchange.awaited;
  if (options_.payload) {
    exchange.frames[static_cast<std::size_t>(receive - receives.begin())] =
        std::move(parcel->frame);
  }
  if (!parcel->handed_over) {
    forget(line, *parcel);
  }
  const ExchangeTag tag = parcel->tag;
  line.parcels.erase(parcel);
  --line.landed;
  if (line.receives) {
    empty_room(id, tag);
  } else {
    acknowledge(id);
  }
  return true;
}

bool SimulatedTransport::roomy(ConnectionId id) {
  Line& line = lines_[id];
  if (line.out >= line.ahead) {
    forget_heard(id);
  }
  line.full = line.out >= line.ahead;
  if (line.full) {
    await_notice(id);
  } else {
    ++line.out;
  }
  return !line.full;
}

void SimulatedTransport::acknowledge(ConnectionId id) {
  Line& line = lines_[id];
  line.taken.push_back(network_.now());
  if (line.full) {
    await_notice(id);
  } else if (line.taken.size() % kTakenKept == 0) {
    forget_heard(id);  // a window that is never full would keep all that it had
  }
}

void SimulatedTransport::forget_heard(ConnectionId id) {
  Line& line = lines_[id];
  const auto heard =
      std::ranges::upper_bound(line.taken, network_.now() - network_.latency_back(id));
  line.out -= static_cast<std::uint32_t>(heard - line.taken.begin());
  line.taken.erase(line.taken.begin(), heard);
}

void SimulatedTransport::await_notice(ConnectionId id) {
  Line& line = lines_[id];
  if (!line.taken.empty() && !line.notice_scheduled) {
    line.notice_scheduled = true;
    const SimTime at = plus(line.taken.front(), network_.latency_back(id));
    notices_.push_back({std::max(at, network_.now()), id});
  }
}

void SimulatedTransport::forget(const Line& line, Parcel& parcel) {
  parcel.handed_over = true;
  // A sender that has ended has no exchange any more.
  if (Open* const open = find(line.edge.from, parcel.tag)) {
    --open->unsent;
  }
}

bool SimulatedTransport::hand_over(Line& line) {
  for (std::size_t i = 0; i < std::min<std::size_t>(line.ahead, line.parcels.size()); ++i) {
    Parcel& parcel = line.parcels[i];
    if (!parcel.handed_over &&
        (parcel.delivered ||
         (parcel.launched && parcel.bytes <= options_.transport.send_buffer_bytes))) {
      forget(line, parcel);
    }
  }
  return complete(line.edge.from) != nullptr;
}

void SimulatedTransport::abort(Rank node) {
  for (const ConnectionId id : lines_from(node)) {
    const auto dropped = static_cast<std::uint32_t>(network_.under_way(id));
    boxes_[index(node)].under_way -= dropped;
    boxes_[index(to(id))].under_way -= dropped;
    network_.abort(id);
    auto& parcels = lines_[id].parcels;
    const auto under_way = [](const Parcel& parcel) { return !parcel.delivered; };
    parcels.erase(std::remove_if(parcels.begin(), parcels.end(), under_way), parcels.end());
  }
}

bool SimulatedTransport::lose_sender(ConnectionId id) {
  Line& line = lines_[id];
  line.sender_gone = true;
  anyone_gone_ = true;
  for (const Open& open : boxes_[index(line.edge.to)].open) {
    for (const Receive& receive : open.exchange.receives) {
      if (open.used && receive.from == line.edge.from && receive.bytes == 0) {
        return true;
      }
    }
  }
  return false;
}

bool SimulatedTransport::lose_receiver(ConnectionId id) {
  Line& line = lines_[id];
  line.receiver_gone = true;
  anyone_gone_ = true;
  return boxes_[index(line.edge.from)].used > 0 &&
         std::any_of(line.parcels.begin(), line.parcels.end(),
                     [](const Parcel& parcel) { return !parcel.handed_over; });
}

std::vector<EdgeReport> SimulatedTransport::edges() const {
  std::vector<EdgeReport> edges;
  edges.reserve(lines_.size());
  for (const Line& line : lines_) {
    edges.push_back(line.edge);
  }
  return edges;
}

std::vector<Rank> SimulatedTransport::awaited(Rank node) const {
  const Box& box = boxes_[index(node)];
  std::vector<Rank> peers;
  for (const Open& open : box.open) {
    for (const Receive& receive : open.exchange.receives) {
      if (open.used && receive.bytes == 0) {
        peers.push_back(receive.from);
      }
    }
  }
  for (const ConnectionId line : lines_from(node)) {
    const auto& parcels = lines_[line].parcels;
    if (std::any_of(parcels.begin(), parcels.end(),
                    [](const Parcel& parcel) { return !parcel.handed_over; })) {
      peers.push_back(to(line));
    }
  }
  std::sort(peers.begin(), peers.end());
  peers.erase(std::unique(peers.begin(), peers.end()), peers.end());
  return peers;
}

}  // namespace sotto
