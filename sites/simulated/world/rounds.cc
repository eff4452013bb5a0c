// What the processes of a world do: rounds, and what they hear.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <sotto/sites/simulated/lies.h>

#include "world.h"

namespace sotto::sites {

// Rounds.

void World::enter(Process& process, ProcessPhase phase, SimTime lasting) {
  process.phase = phase;
  process.due = plus(queue_.now(), lasting);
  queue_.push({.time = process.due,
               .subject = process.id,
               .version = ++process.version,
               .kind = phase_over});
}

void World::on_phase_over(Process& process) {
  switch (process.phase) {
    case ProcessPhase::computing:
      offer(process);
      break;
    case ProcessPhase::writing:
      commit(process);
      break;
    case ProcessPhase::waiting:
    case ProcessPhase::collecting:
      advance(process);
      break;
  }
}

/// Goes on if there is nothing more to wait for.
void World::advance(Process& process) {
  if (process.phase == ProcessPhase::waiting) {
    if (process.state.incarnation != process.disk->account().incarnation) {
      write(process);  // so that its incarnation outlives a crash
      return;
    }
    const bool waited = queue_.now() >= plus(process.waits_since, plan_.found_after);
    audit_.begin_event(queue_.now(), process.site, "being asked whether it is ready");
    const bool ready = process.access->try_begin(waited);
    observe(process);
    if (process.state.incarnation != process.disk->account().incarnation) {
      write(process);
      return;
    }
    flush(process);
    if (ready) {
      begin_round(process);
    } else if (queue_.now() >= process.due) {
      enter(process, ProcessPhase::waiting, plan_.reconnect);
    }
  } else if (process.phase == ProcessPhase::collecting) {
    const double waited = to_seconds(queue_.now() - process.collects_since);
    process.patience.look(waited, process.node->awaited());
    if (process.node->complete() || queue_.now() >= process.due) {
      process.patience.end(waited);
      audit_.begin_event(queue_.now(), process.site, "asking for a sum");
      if (process.node->ask_for_sum()) {
        audit_.collected(process);
        await_peers(process);
        flush(process);
        advance(process);
        return;
      }
      collect(process);
    }
  }
}

void World::begin_round(Process& process) {
  process.moved = queue_.now();
  if (!process.alive || reach(process, FaultMoment::any)) {
    return;
  }
  const double share = 0.75 + 0.5 * random_.uniform();
  SimTime takes = from_nanoseconds(static_cast<double>(plan_.gradient) * share *
                                   static_cast<double>(plan_.interval));
  const PlannedLie* lie = lie_now(process.site);
  if (lie != nullptr && lie->kind == LieKind::late &&
      (lie->often >= 1 || liar_random_.uniform() < lie->often)) {
    takes = plus(takes, from_nanoseconds(lie->strength_of() * static_cast<double>(plan_.patience)));
  }
  enter(process, ProcessPhase::computing, takes);
}

/// f(x) = ½ ‖x − c‖², another c at each site.
std::vector<float> World::target_of(Rank site) const {
  RandomStream stream({.seed = options_.seed, .rank = site, .purpose = Purpose::generate});
  std::vector<float> target(options_.dimension);
  for (float& value : target) {
    value = static_cast<float>(2 * stream.uniform() - 1);
  }
  return target;
}

/// As `sotto node` does: a model that is absurd is put back.
Status World::take_steps(Process& process) {
  const std::vector<float> target = target_of(process.site);
  std::vector<float> gradient(options_.dimension);
  for (Round step = 0; step < steps_of(process.site);) {
    const std::span<const float> at = process.node->parameters();
    double loss = 0;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      gradient[i] = at[i] - target[i];
      loss += static_cast<double>(gradient[i] * gradient[i]);
    }
    Status status = std::isfinite(loss) ? process.node->step(gradient)
                                        : Status(Fault::non_finite, "its loss is not finite");
    if (status.ok()) {
      ++step;
    } else if (status.fault() == Fault::non_finite && process.node->put_back()) {
      ++report_.put_backs;
      step = 0;
    } else {
      return status;
    }
  }
  return {};
}

void World::offer(Process& process) {
  audit_.begin_event(queue_.now(), process.site, "its steps");
  if (const Status status = take_steps(process); !status.ok() && honest(process.site)) {
    audit_.fail(status.message());
  }
  audit_.stepped(process);
  audit_.begin_event(queue_.now(), process.site, "making parcels");
  if (const Status status = process.node->offer(); !status.ok()) {
    audit_.fail(status.message());
  }
  audit_.offered(process);
  process.offered = true;
  write(process);
}

/// Before a round's parcels leave; and before a new incarnation is told to anybody, so that it
/// outlives a crash.
void World::write(Process& process) {
  ByteBuffer bytes;
  process.access->save(bytes);
  process.writing = {.life = process.life,
                     .bytes = std::move(bytes).take(),
                     .account = process.account,
                     .state = process.state,
                     .peers = process.peers,
                     .listed = process.listed};
  report_.largest_state = std::max(report_.largest_state, process.writing->bytes.size());
  if (!reach(process, FaultMoment::before_commit)) {
    enter(process, ProcessPhase::writing, plan_.commit);
  }
}

void World::commit(Process& process) {
  std::deque<Commit>& commits = process.disk->commits;
  note(SimulatedSiteEvent::Kind::committed, process.site, -1, fingerprint(process.writing->bytes));
  commits.push_back(std::move(*process.writing));
  process.writing.reset();
  if (commits.size() > Disk::kKept) {
    commits.pop_front();
  }
  if (reach(process, FaultMoment::before_release)) {
    return;
  }
  if (!process.reachable) {
    open_channels(process);
    return;
  }
  if (!process.offered) {
    await_model(process);
    return;
  }
  await_peers(process);
  flush(process);
  if (process.alive && process.leaving) {
    end_process(process, true);
    return;
  }
  drain(process);
  if (process.running() && process.phase == ProcessPhase::collecting) {
    advance(process);
  }
}

void World::await_peers(Process& process) {
  process.collects_since = queue_.now();
  const auto heard = std::ranges::count_if(
      process.peers, [](const PeerState& peer) { return peer.heard && peer.waited_for; });
  process.patience.begin(0, process.node->awaited(), static_cast<std::size_t>(heard));
  enter(process, ProcessPhase::collecting, from_seconds(process.patience.lasts()));
}

void World::collect(Process& process) {
  audit_.begin_event(queue_.now(), process.site, "taking parcels in");
  if (const Status status = process.node->collect(); !status.ok()) {
    audit_.fail(status.message());
  }
  const Incarnation before = process.state.incarnation;
  audit_.collected(process);
  naming_.look(queue_.now(), process);
  note_renewal(process, before);
  note(SimulatedSiteEvent::Kind::finished, process.site, -1, process.state.round);
  for (const Rank peer : process.listed) {
    if (const Process* other = present(peer); other != nullptr && other->alive) {
      audit_.compare_copies(*other, process);
    }
  }
  process.moved = process.waits_since = queue_.now();
  await_model(process);
}

/// The onlooker sees what an event has done.
void World::observe(Process& process) {
  const Incarnation before = process.state.incarnation;
  audit_.heard(process);
  note_renewal(process, before);
}

void World::note_renewal(const Process& process, Incarnation before) {
  if (process.state.incarnation != before) {
    whole_ = false;
    note(SimulatedSiteEvent::Kind::renewed, process.site, -1, process.state.incarnation);
  }
}

// The channels of a site.

void World::tell(ProcessId id, ChannelNews news) {
  Process& process = processes_[id];
  if (!process.alive) {
    return;
  }
  std::optional<Handed> parcel;
  if (news.kind == ChannelNews::Kind::message) {
    parcel = audit_.recognize(process, processes_[news.from], news.message);
  }
  process.inbox.push_back({std::move(news), parcel});
  drain(process);
}

void World::drain(Process& process) {
  const auto may_poll = [&] {
    const bool busy =
        process.phase == ProcessPhase::computing || process.phase == ProcessPhase::writing;
    return process.running() && (polls_while_busy_ || !busy);
  };
  if (process.draining) {
    return;  // what it does about one thing may bring about the next
  }
  process.draining = true;
  bool heard = false;
  while (may_poll() && !process.inbox.empty()) {
    const Incoming incoming = std::move(process.inbox.front());
    process.inbox.pop_front();
    hear(process, incoming);
    heard = true;
  }
  process.draining = false;
  if (heard && process.running()) {
    advance(process);
  }
}

void World::hear(Process& process, const Incoming& incoming) {
  const ChannelNews& news = incoming.news;
  const auto found = std::find(process.listed.begin(), process.listed.end(), news.peer);
  if (found == process.listed.end()) {
    return;  // it has left the list meanwhile
  }
  const auto place = static_cast<std::size_t>(found - process.listed.begin());
  ConnectionId& channel = process.channels[place];
  if (news.kind == ChannelNews::Kind::up) {
    audit_.begin_event(queue_.now(), process.site, "a channel's coming up");
    note(SimulatedSiteEvent::Kind::up, process.site, news.peer);
    channel = news.connection;
    process.node->peer_up(place);
  } else if (channel != news.connection) {
    return;  // of a connection that it has given up
  } else if (news.kind == ChannelNews::Kind::down) {
    audit_.begin_event(queue_.now(), process.site, "a channel's going down");
    note(SimulatedSiteEvent::Kind::down, process.site, news.peer);
    channel = kNoConnection;
    process.node->peer_down(place);
  } else {
    audit_.begin_event(queue_.now(), process.site, "a message");
    note(SimulatedSiteEvent::Kind::received, process.site, news.peer, news.message.size());
    audit_.delivers(process, incoming);
    // A fault asks for the channel to be closed, and shows in the peer's state.
    (void)process.access->receive(place, news.message);
  }
  observe(process);
  if (still_alive(process)) {
    flush(process);
  }
}

void World::flush(Process& process) {
  if (process.phase == ProcessPhase::writing) {
    return;
  }
  for (const Released& released : process.access->released()) {
    const Rank peer = process.listed[released.peer];
    if (released.hang_up) {
      wires_.close(process.id, process.channels[released.peer], plan_.reconnect);
      continue;
    }
    const std::vector<std::byte> message = released.bytes();
    audit_.releases(process, peer, message);
    let_go(process, released.peer, message);
  }
}

void World::let_go(Process& process, std::size_t place, std::span<const std::byte> message) {
  const auto send = [&](std::span<const std::byte> bytes) {
    note(SimulatedSiteEvent::Kind::sent, process.site, process.listed[place], fingerprint(bytes));
    wires_.send(process.id, process.channels[place], bytes);
  };
  const PlannedLie* lie = lie_now(process.site);
  if (lie == nullptr) {
    send(message);
    return;
  }
  const MessageForm form = {
      .dimension = options_.dimension, .exchange = plan_.exchange, .compressor = forger_.get()};
  for (const std::vector<std::byte>& said : lie_about(*lie, message, form, liar_random_)) {
    send(said);
  }
}

}  // namespace sotto::sites
