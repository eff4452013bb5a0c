#include "round_player.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace sotto::sites {

RoundPlayer::RoundPlayer(WorldState& state, Liars& liars, Reach reach)
    : state_(state),
      liars_(liars),
      reach_(std::move(reach)),
      polls_while_busy_(state.random.below(2) == 0) {}

// Rounds.

void RoundPlayer::start(Process& process) {
  if (process.disk->commits.empty()) {
    write(process);
  } else {
    open_channels(process);
  }
}

void RoundPlayer::open_channels(Process& process) {
  process.reachable = true;
  process.moved = process.waits_since = state_.now();
  state_.wires.begin(process.id, process.site, process.listed);
  await_model(process);
}

void RoundPlayer::await_model(Process& process) {
  process.offered = false;
  enter(process, ProcessPhase::waiting, state_.plan.found_after);
  drain(process);
  if (process.running() && process.phase == ProcessPhase::waiting) {
    advance(process);
  }
}

void RoundPlayer::enter(Process& process, ProcessPhase phase, SimTime lasting) {
  process.phase = phase;
  process.due = plus(state_.now(), lasting);
  state_.push(WorldEvent::phase_over, process.due, process.id, ++process.version);
}

void RoundPlayer::on_phase_over(Process& process) {
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
void RoundPlayer::advance(Process& process) {
  if (process.phase == ProcessPhase::waiting) {
    if (process.state.incarnation != process.disk->account().incarnation) {
      write(process);  // so that its incarnation outlives a crash
      return;
    }
    const bool waited = state_.now() >= plus(process.waits_since, state_.plan.found_after);
    state_.audit.begin_event(state_.now(), process.site, "being asked whether it is ready");
    const bool ready = process.access->try_begin(waited);
    observe(process);
    if (process.state.incarnation != process.disk->account().incarnation) {
      write(process);
      return;
    }
    flush(process);
    if (ready) {
      begin_round(process);
    } else if (state_.now() >= process.due) {
      enter(process, ProcessPhase::waiting, state_.plan.reconnect);
    }
  } else if (process.phase == ProcessPhase::collecting) {
    const double waited = to_seconds(state_.now() - process.collects_since);
    process.patience.look(waited, process.node->awaited());
    if (process.node->complete() || state_.now() >= process.due) {
      process.patience.end(waited);
      note_time(process);
      state_.audit.begin_event(state_.now(), process.site, "asking for a sum");
      if (process.node->ask_for_sum()) {
        state_.audit.collected(process);
        await_peers(process);
        flush(process);
        advance(process);
        return;
      }
      collect(process);
    }
  }
}

void RoundPlayer::begin_round(Process& process) {
  process.moved = state_.now();
  if (!process.alive || reach_(process, FaultMoment::any)) {
    return;
  }
  const double share = 0.75 + 0.5 * state_.random.uniform();
  const SimTime takes = from_nanoseconds(static_cast<double>(state_.plan.gradient) * share *
                                         static_cast<double>(state_.plan.interval));
  enter(process, ProcessPhase::computing, plus(takes, liars_.delay_of(process.site)));
}

/// As `sotto node` does: a model that is absurd is put back.
Status RoundPlayer::take_steps(Process& process) {
  const std::vector<float> target = state_.target_of(process.site);
  std::vector<float> gradient(state_.options.dimension);
  for (Round step = 0; step < state_.steps_of(process.site);) {
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
      ++state_.report.put_backs;
      step = 0;
    } else {
      return status;
    }
  }
  return {};
}

void RoundPlayer::offer(Process& process) {
  state_.audit.begin_event(state_.now(), process.site, "its steps");
  if (const Status status = take_steps(process); !status.ok() && state_.honest(process.site)) {
    state_.audit.fail(status.message());
  }
  state_.audit.stepped(process);
  state_.audit.begin_event(state_.now(), process.site, "making parcels");
  if (const Status status = process.node->offer(); !status.ok()) {
    state_.audit.fail(status.message());
  }
  state_.audit.offered(process);
  process.offered = true;
  write(process);
}

/// Before a round's parcels leave; and before a new incarnation is told to anybody, so that it
/// outlives a crash.
void RoundPlayer::write(Process& process) {
  ByteBuffer bytes;
  process.access->save(bytes);
  process.writing = {.life = process.life,
                     .bytes = std::move(bytes).take(),
                     .account = process.account,
                     .state = process.state,
                     .peers = process.peers,
                     .listed = process.listed};
  state_.report.largest_state =
      std::max(state_.report.largest_state, process.writing->bytes.size());
  if (!reach_(process, FaultMoment::before_commit)) {
    enter(process, ProcessPhase::writing, state_.plan.commit);
  }
}

void RoundPlayer::commit(Process& process) {
  std::deque<Commit>& commits = process.disk->commits;
  state_.note(SimulatedSiteEvent::Kind::committed, process.site, -1,
              fingerprint(process.writing->bytes));
  commits.push_back(std::move(*process.writing));
  process.writing.reset();
  if (commits.size() > Disk::kKept) {
    commits.pop_front();
  }
  if (reach_(process, FaultMoment::before_release)) {
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
    state_.end_process(process, true);
    return;
  }
  drain(process);
  if (process.running() && process.phase == ProcessPhase::collecting) {
    advance(process);
  }
}

void RoundPlayer::note_time(Process& process) const {
  if (!std::exchange(process.timed, true)) {
    process.node->note_time({.lasted = to_seconds(state_.now() - process.waits_since),
                             .waited = to_seconds(state_.now() - process.collects_since)});
  }
}

void RoundPlayer::await_peers(Process& process) {
  process.collects_since = state_.now();
  const auto heard = std::ranges::count_if(
      process.peers, [](const PeerState& peer) { return peer.heard && peer.waited_for; });
  process.patience.begin(0, process.node->awaited(), static_cast<std::size_t>(heard));
  enter(process, ProcessPhase::collecting, from_seconds(process.patience.lasts()));
}

void RoundPlayer::collect(Process& process) {
  state_.audit.begin_event(state_.now(), process.site, "taking parcels in");
  if (const Status status = process.node->collect(); !status.ok()) {
    state_.audit.fail(status.message());
  }
  const Incarnation before = process.state.incarnation;
  state_.audit.collected(process);
  state_.naming.look(state_.now(), process);
  note_renewal(process, before);
  state_.note(SimulatedSiteEvent::Kind::finished, process.site, -1, process.state.round);
  for (const Rank peer : process.listed) {
    if (const Process* other = state_.present(peer); other != nullptr && other->alive) {
      state_.audit.compare_copies(*other, process);
    }
  }
  process.moved = process.waits_since = state_.now();
  process.timed = false;
  await_model(process);
}

/// The onlooker sees what an event has done.
void RoundPlayer::observe(Process& process) {
  const Incarnation before = process.state.incarnation;
  state_.audit.heard(process);
  note_renewal(process, before);
}

void RoundPlayer::note_renewal(const Process& process, Incarnation before) {
  if (process.state.incarnation != before) {
    state_.whole = false;
    state_.note(SimulatedSiteEvent::Kind::renewed, process.site, -1, process.state.incarnation);
  }
}

// The channels of a site.

void RoundPlayer::tell(ProcessId id, ChannelNews news) {
  Process& process = state_.processes[id];
  if (!process.alive) {
    return;
  }
  std::optional<Handed> parcel;
  if (news.kind == ChannelNews::Kind::message) {
    parcel = state_.audit.recognize(process, state_.processes[news.from], news.message);
  }
  process.inbox.push_back({std::move(news), parcel});
  drain(process);
}

void RoundPlayer::drain(Process& process) {
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

void RoundPlayer::hear(Process& process, const Incoming& incoming) {
  const ChannelNews& news = incoming.news;
  const auto found = std::find(process.listed.begin(), process.listed.end(), news.peer);
  if (found == process.listed.end()) {
    return;  // it has left the list meanwhile
  }
  const auto place = static_cast<std::size_t>(found - process.listed.begin());
  ConnectionId& channel = process.channels[place];
  if (news.kind == ChannelNews::Kind::up) {
    state_.audit.begin_event(state_.now(), process.site, "a channel's coming up");
    state_.note(SimulatedSiteEvent::Kind::up, process.site, news.peer);
    channel = news.connection;
    process.node->peer_up(place);
  } else if (channel != news.connection) {
    return;  // of a connection that it has given up
  } else if (news.kind == ChannelNews::Kind::down) {
    state_.audit.begin_event(state_.now(), process.site, "a channel's going down");
    state_.note(SimulatedSiteEvent::Kind::down, process.site, news.peer);
    channel = kNoConnection;
    process.node->peer_down(place);
  } else {
    state_.audit.begin_event(state_.now(), process.site, "a message");
    state_.note(SimulatedSiteEvent::Kind::received, process.site, news.peer, news.message.size());
    state_.audit.delivers(process, incoming);
    // A fault asks for the channel to be closed, and shows in the peer's state.
    (void)process.access->receive(place, news.message);
  }
  observe(process);
  if (still_alive(process)) {
    flush(process);
  }
}

void RoundPlayer::flush(Process& process) {
  if (process.phase == ProcessPhase::writing) {
    return;
  }
  for (const Released& released : process.access->released()) {
    const Rank peer = process.listed[released.peer];
    if (released.hang_up) {
      state_.wires.close(process.id, process.channels[released.peer], state_.plan.reconnect);
      continue;
    }
    std::vector<std::byte> message = released.bytes();
    state_.audit.releases(process, peer, message);
    for (const std::vector<std::byte>& said :
         liars_.in_place_of(std::move(message), process.site)) {
      state_.note(SimulatedSiteEvent::Kind::sent, process.site, peer, fingerprint(said));
      state_.wires.send(process.id, process.channels[released.peer], said);
    }
  }
}

/// An honest site ends of itself only where an older state of it was restored, or another process
/// of it ran.
void RoundPlayer::note_end(const Process& process) {
  const std::string why = process.node->alive().message();
  state_.report.ended.push_back(
      fmt::format("site {} at {:.3f} s: {}", process.site, to_seconds(state_.now()), why));
  if (!state_.slot(process.site).may_end) {
    state_.audit.begin_event(state_.now(), process.site, "its end");
    state_.audit.fail(fmt::format("ends of itself: {}", why));
  }
}

bool RoundPlayer::still_alive(Process& process) {
  if (process.node->alive().ok()) {
    return true;
  }
  const Rank site = process.site;
  const bool replaced = process.fenced;
  if (!replaced && state_.honest(site)) {
    note_end(process);
  }
  if (replaced) {
    state_.end_process(process, false);
  } else {
    state_.end_and_begin_again(process);  // as its operator does
  }
  return false;
}

}  // namespace sotto::sites
