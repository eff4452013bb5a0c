#include <sotto/sites/core/site.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/sites/core/conduct/pace.h>
#include <sotto/sites/core/site_admission.h>
#include <sotto/sites/core/sums/secure_sum.h>

namespace sotto::sites {
namespace {

/// The key of a round's rounding: of its own for each incarnation.
RandomKey rounding_key(std::uint64_t seed, Incarnation incarnation, Round round) {
  return {.seed = seed + (incarnation >> 31),
          .rank = static_cast<Rank>(incarnation & 0x7FFFFFFF),
          .round = round,
          .purpose = Purpose::quantize};
}

std::unique_ptr<Mixing> mixing_of(SiteSetup& setup) {
  admit(setup);
  return make_mixing(setup);
}

/// A site that has not begun.
SiteSelf self_of(SiteSetup setup) {
  SiteSelf self;
  self.incarnation = setup.incarnation;
  self.planned = setup.communication_interval;
  self.setup = std::move(setup);
  return self;
}

}  // namespace

Site::Site(SiteSetup setup)
    : mixing_(mixing_of(setup)),
      self_(self_of(std::move(setup))),
      beginning_(self_.setup.rounds),
      leaving_(self_, peers_, *mixing_),
      talk_(self_, peers_, *mixing_, models_, leaving_) {
  if (self_.setup.outer_step_rule && !self_.setup.observer) {
    outer_.emplace(*self_.setup.outer_step_rule, self_.setup.layout, self_.setup.parameters.size(),
                   *self_.setup.ops);
  }
  update_peers(self_.setup.peers);
}

// What happens to it.

void Site::update_peers(const std::vector<SitePeer>& peers) {
  admit_peers(peers, self_.setup.exchange);
  std::vector<SitePeer> list = peers;
  for (SitePeer& entry : list) {
    entry.tells = entry.tells && !self_.setup.observer;
  }
  for (const std::size_t k : peers_.changed_by(list)) {
    talk_.close(k);  // its hello said otherwise
  }
  for (const std::size_t k : peers_.missing_from(list)) {
    leaving_.retire(peers_[k]);
    self_.written_off += peers_[k].leave();
  }
  const Neighbours::Moves moves = peers_.update(list);
  beginning_.rearrange(moves.to);
  models_.rearrange(moves.to);
  mixing_->rearrange(moves.from);
  if (SecureSum* sum = mixing_->sum(); sum != nullptr) {
    std::vector<std::string> names;
    names.reserve(list.size());
    for (const SitePeer& entry : list) {
      names.push_back(entry.name);
    }
    sum->know(names);
  }
  talk_.rearrange(moves.to);
}

// A round.

Status Site::step(std::span<const float> gradient) {
  check(self_.phase == RoundPhase::training, "a site steps between try_begin and offer");
  check(gradient.size() == self_.setup.parameters.size(), "a gradient has the model's dimension");
  const Round number = self_.round * self_.setup.communication_interval + steps_;
  if (Status status = mixing_->step(number, gradient); !status.ok()) {
    return self_.here(status);
  }
  ++steps_;
  return {};
}

void Site::plan_steps(Round steps) {
  check(steps >= 1 && steps <= self_.setup.communication_interval, "a round has 1 … H steps");
  self_.planned = steps;
}

Status Site::offer() {
  check(self_.phase == RoundPhase::training, "a site offers once a round");
  if (self_.outdated) {
    self_.phase = RoundPhase::offered;
    return {};
  }
  if (Status status = weigh_steps(); !status.ok()) {
    return self_.here(status);
  }
  std::vector<Addressee> to;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    Neighbour& peer = peers_[k];
    const bool room = peer.out.items().size() < self_.setup.window;
    peer.habits.note_offer(!room && peer.told(), peer.channel.joining);
    if (peer.told() && room && !peer.draining) {
      to.push_back({.peer = k, .whole = peer.out.behind(), .observer = peer.observer});
    }
  }
  if (Status status = mixing_->offer(rounding_key(self_.setup.seed, self_.incarnation, self_.round),
                                     peers_.tells(), to);
      !status.ok()) {
    return self_.here(status);
  }
  self_.phase = RoundPhase::offered;
  self_.trained = true;
  self_.offered = self_.round + 1;
  steps_ = 0;
  talk_.post(to);  // before receipts, which say that the round's parcel, if there was one, has gone
  const Pace pace = pace_of(self_);
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    peers_[k].in.make_durable();
    Neighbour& peer = peers_[k];
    peer.channel.unheard += 1;
    const bool waits = peer.heard() && peer.punctuality.waited_for() && pace.late(peer);
    if (peer.up() && (waits || peer.needs_receipt())) {
      talk_.confirm(k);
    }
  }
  return {};
}

Status Site::weigh_steps() {
  if (steps_ == 0 || self_.setup.step_weighting == StepWeighting::work) {
    return {};
  }
  double sum = static_cast<double>(self_.planned);
  double sites = 1;
  for (const Neighbour& peer : peers_) {
    if (peer.heard() && peer.channel.own_steps > 0) {
      sum += static_cast<double>(peer.channel.own_steps);
      sites += 1;
    }
  }
  const double factor = sum / sites / static_cast<double>(self_.planned);
  return factor == 1 ? Status() : mixing_->stretch(static_cast<float>(factor));
}

bool Site::ask_for_sum() {
  SecureSum* sum = mixing_->sum();
  if (sum == nullptr || self_.phase != RoundPhase::offered || sum_round_.asked() ||
      self_.outdated) {
    return false;
  }
  begin_intake();
  sum_round_.ask(peers_);
  auto question = sum->close();
  talk_.tell(sum->answers_due());
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    take_in(k);
  }
  if (question) {
    talk_.ask(*std::move(question), sum->members());
  }
  return true;
}

std::vector<std::size_t> Site::awaited() const {
  if (sum_round_.asked()) {
    return SumRound::awaited(peers_, mixing_->sum()->owed());
  }
  std::vector<std::size_t> awaited;
  const SumHope hope = self_.phase == RoundPhase::offered ? hope_of_sum() : SumHope::enough;
  if (hope == SumHope::none) {
    return awaited;  // the sooner it is where the others are
  }
  const Pace pace = pace_of(self_);
  for (std::size_t k = 0; k < peers_.size() && !self_.outdated; ++k) {
    const Neighbour& peer = peers_[k];
    const bool due = self_.phase == RoundPhase::waiting
                         ? peer.up() && peer.channel.model_due
                         : peer.heard() && !peer.channel.joining && pace.outstanding(peer) &&
                               (hope == SumHope::few || peer.punctuality.waited_for());
    if (due && self_.phase != RoundPhase::training && !peer.draining) {
      awaited.push_back(k);
    }
  }
  return awaited;
}

Status Site::collect() {
  check(self_.phase == RoundPhase::offered, "a site collects what it has offered for");
  if (self_.outdated) {
    give_up();
    return {};
  }
  if (sum_round_.asked()) {
    sum_round_.end(peers_, mixing_->sum()->owed());
  } else {
    begin_intake();
  }
  std::vector<MixedPeer> mixed;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    take_in(k);
    if (peers_[k].heard() && !peers_[k].draining) {
      // In gossip trust goes both ways: one that does not hear this site would lead it for ever.
      const bool one_sided = self_.setup.exchange == MixingKind::gossip && !peers_[k].told();
      mixed.push_back({.peer = k,
                       .degree = peers_[k].channel.degree,
                       .barred = one_sided || peers_[k].credit(self_.round) != Credit::whole,
                       .part = peers_[k].part});
    }
  }
  if (Status status = mixing_->mix(peers_.size(), mixed); !status.ok()) {
    return self_.here(status);
  }
  const bool weighs = self_.setup.exchange == MixingKind::push_sum && !self_.setup.observer;
  conduct_.end_intake(peers_, mixed,
                      {.offered = self_.offered,
                       .mass = weighs ? std::optional(mixing_->mass()) : std::nullopt,
                       .least_mass = self_.setup.mass.least,
                       .share = weighs ? mixing_->stepsize() : 1});
  step_outside();
  settled_mass_ = mixing_->mass();
  self_.round = next_round();
  self_.phase = RoundPhase::training;
  return {};
}

void Site::step_outside() {
  if (!outer_) {
    return;
  }
  const auto next = outer_->step(self_.round, self_.setup.parameters);
  if (!next.empty() && mixing_->move_to(next).ok()) {
    outer_->arrived(self_.setup.parameters);
  } else {
    outer_->begin(self_.setup.parameters);  // neighbours must not end this site
  }
}

void Site::keep_model() {
  mixing_->keep();
  if (outer_) {
    outer_->keep();
  }
}

void Site::begin_intake() {
  keep_model();
  // Where sites sum in secret one sends nothing as long as it has not met all others, as this site
  // may not have either.
  const bool all_send = mixing_->sum() == nullptr || std::ranges::all_of(peers_, &Neighbour::up);
  const bool timed = self_.setup.newcomer_s > 0 && time_.lasted > 0;
  conduct_.begin_intake(
      peers_, pace_of(self_),
      {.time = time_,
       .all_send = all_send,
       .newcomer_part = timed ? time_.lasted / self_.setup.newcomer_s : 1.0 / kNewcomerRounds});
  time_ = {};
}

std::optional<std::vector<Suspect>> Site::put_back() {
  check(self_.phase == RoundPhase::training, "a model is put back before it is offered");
  if (!conduct_.influenced()) {
    return std::nullopt;
  }
  const Status status = mixing_->put_back();
  check(status.ok(), "what was kept can be put back");
  if (outer_) {
    outer_->put_back();
  }
  const bool at_once = std::exchange(steps_, 0) == 0;
  return conduct_.put_back(peers_, self_.round, mixing_->longest_step(), at_once);
}

bool Site::due(const Neighbour& from, Round round) const {
  // In step, a peer is at most one round ahead, and what it sent for the next round waits. One that
  // has not waited for us is not waited for.
  if (mixing_->sum() != nullptr) {
    // A sum is of one round. The parcels of a peer that has run far ahead will never be in one.
    return round <= self_.offered || round > self_.offered + self_.setup.window;
  }
  const bool ahead = self_.setup.slack == 0 && round == self_.offered + 1;
  return !ahead || from.known.round > self_.offered + 1;
}

void Site::take_in(std::size_t peer) {
  Neighbour& from = peers_[peer];
  // What comes together is as fresh as the latest of it: it was late on the way.
  Freshness::Rounds now = {.own = self_.offered};
  for (const InStream::Item& item : from.in.pending()) {
    if (due(from, item.round)) {
      now.theirs = item.round;
    }
  }
  const double part = from.freshness.part(now, self_.setup.pull.fresh_of(self_.setup.exchange));
  while (!from.in.pending().empty() && due(from, from.in.pending().front().round)) {
    const Round theirs = from.in.pending().front().round;
    const auto taken = mixing_->take_in(peer, from.in.pending().front().payload,
                                        {.credit = from.credit(self_.round), .part = part});
    if (!taken) {
      from.in.drop_pending();
      // The fault is told by the peer's state.
      (void)talk_.offence(peer, taken.status().fault(), taken.status().message());
      return;
    }
    from.influence.add(taken->influence);
    from.habits.note_returned(taken->counted);
    from.part = part;
    from.freshness.note({.own = self_.offered, .theirs = theirs});
    from.in.apply_first(taken->mass);
  }
}

SumHope Site::hope_of_sum() const {
  const SecureSum* sum = mixing_->sum();
  return sum == nullptr ? SumHope::enough : sum_hope(peers_, self_.offered, sum->least_members());
}

Round Site::next_round() const {
  const SecureSum* sum = mixing_->sum();
  return sum == nullptr ? self_.offered
                        : round_after(peers_, self_.offered, sum->least_members(),
                                      mixing_->counts().lost_in_a_row, self_.setup.rounds);
}

bool Site::hand_over() {
  check(steps_ == 0 && self_.phase != RoundPhase::offered, "a site leaves between two rounds");
  const auto heir = leaving_.hand_over();
  if (heir) {
    talk_.send_parcel(*heir, peers_[*heir].out.next() - 1);
  }
  return heir.has_value();
}

// What it is.

SiteState Site::state() const {
  const MassBalance balance = mixing_->balance();
  return {.round = self_.round,
          .incarnation = self_.incarnation,
          .life = self_.setup.life,
          .has_model = self_.trained,
          .own_steps = self_.planned,
          .mass = mixing_->mass(),
          .settled_mass = self_.phase == RoundPhase::offered ? settled_mass_ : mixing_->mass(),
          .minted = self_.minted,
          .written_off = self_.written_off,
          .undelivered = leaving_.bequest().undelivered(peers_),
          .raised = balance.raised,
          .lowered = balance.lowered,
          .drained = conduct_.drained(),
          .longest_step = mixing_->longest_step(),
          .version = mixing_->version({}),
          .resets = self_.resets,
          .giver = beginning_.began_by(),
          .round_said_by = beginning_.said_by(),
          .sums = mixing_->counts()};
}

std::vector<PeerState> Site::peers() const {
  std::vector<PeerState> states;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    states.push_back(peers_[k].state());
    states.back().version = mixing_->version(k);
    states.back().barred = peers_[k].barred(self_.round);
  }
  return states;
}

std::size_t Site::max_message_bytes() const {
  return sites::max_message_bytes(self_.setup.parameters.size(), mixing_->max_payload());
}

}  // namespace sotto::sites
