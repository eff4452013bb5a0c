#include <sotto/sites/core/site.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/philox.h>
#include <sotto/sites/core/secure_sum.h>
#include <sotto/sites/core/site_admission.h>

namespace sotto::sites {
namespace {

/// The key of a round's rounding: of its own for each incarnation.
RandomKey rounding_key(std::uint64_t seed, Incarnation incarnation, Round round) {
  return {.seed = seed + (incarnation >> 31),
          .rank = static_cast<Rank>(incarnation & 0x7FFFFFFF),
          .round = round,
          .purpose = Purpose::quantize};
}

}  // namespace

Site::Site(SiteSetup setup)
    : mixing_(admit(setup)),
      setup_(std::move(setup)),
      incarnation_(setup_.incarnation),
      planned_(setup_.communication_interval),
      beginning_(setup_.rounds) {
  if (setup_.outer_step_rule && !setup_.observer) {
    outer_.emplace(*setup_.outer_step_rule, setup_.layout, setup_.parameters.size(), *setup_.ops);
  }
  update_peers(setup_.peers);
}

// What happens to it.

void Site::peer_up(std::size_t peer) {
  Neighbour& from = peers_[peer];
  check(!from.connected(), "a channel opens once");
  if (!alive_) {
    return;
  }
  const bool wants = phase_ == Phase::waiting && !has_left();
  outbox_.send(peer, encode(from.greet({.agreement = setup_.agreement,
                                        .incarnation = incarnation_,
                                        .life = setup_.life,
                                        .has_model = trained_,
                                        .wants_model = wants,
                                        .observer = setup_.observer,
                                        .round = offered_,
                                        .degree = static_cast<std::uint32_t>(peers_.size())})));
}

void Site::peer_down(std::size_t peer) {
  peers_[peer].hang_up();
  outbox_.drop(peer);
}

void Site::close(std::size_t peer) {
  outbox_.drop(peer);
  if (peers_[peer].connected()) {
    outbox_.hang_up(peer);
    peers_[peer].channel.stage = ChannelStage::refused;
  }
}

void Site::update_peers(const std::vector<SitePeer>& peers) {
  admit_peers(peers, setup_.exchange);
  std::vector<SitePeer> list = peers;
  for (SitePeer& entry : list) {
    entry.tells = entry.tells && !setup_.observer;
  }
  for (const std::size_t k : peers_.changed_by(list)) {
    close(k);  // its hello said otherwise
  }
  for (const std::size_t k : peers_.missing_from(list)) {
    bequest_.retire(peers_[k]);
    written_off_ += peers_[k].leave();
  }
  const Neighbours::Moves moves = peers_.update(list);
  beginning_.rearrange(moves.to);
  models_.rearrange(moves.to);
  mixing_.model->rearrange(moves.from);
  if (SecureSum* sum = mixing_.sum(); sum != nullptr) {
    std::vector<std::string> names;
    for (const SitePeer& entry : list) {
      names.push_back(entry.name);
    }
    sum->know(names);
  }
  outbox_.rearrange(moves.to, Mixing::kNobody);
}

// A round.

bool Site::try_begin(bool waited) {
  if (outdated_) {
    give_up();
  }
  if (phase_ != Phase::waiting) {
    return true;
  }
  if (!trained_ && !models_.empty() && (waited || !may_hear_second_model())) {
    take_over_model();
  }
  if (!trained_ && !models_.empty()) {
    return false;
  }
  if (trained_ && !waited && beginning_.doubtful() && !peers_.has_second_opinion()) {
    return false;
  }
  bool all_there = true;
  bool begun = false;
  for (const Neighbour& peer : peers_) {
    if (!trained_ && peer.up() && peer.channel.model_due) {
      return false;
    }
    all_there = all_there && (peer.up() || !peer.entry.hears);
    begun = begun || (peer.heard() && peer.known.round > 0);
  }
  if (trained_ || begun || all_there || waited) {
    begin();
  }
  return phase_ != Phase::waiting;
}

bool Site::may_hear_second_model() const {
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    const Neighbour& peer = peers_[k];
    const bool may = peer.up() ? peer.channel.model_due && !models_.full()
                               : !peer.refused.has_value() && !models_.enough();
    if (peer.entry.hears && may && !models_.has(k)) {
      return true;
    }
  }
  return false;
}

void Site::take_over_model() {
  const OfferedModel model = models_.choose(setup_.parameters);
  if (outer_) {
    outer_->begin(setup_.parameters);  // where the site goes back to, should this one be spoilt
  }
  keep_model();
  conduct_.took_over(peers_[model.peer], distance_between(model.values, setup_.parameters));
  setup_.ops->copy(model.values, setup_.parameters);
  trained_ = true;
  beginning_.take_over(model.peer, model.round);
}

void Site::begin() {
  mixing_.model->begin();
  if (outer_) {
    outer_->begin(setup_.parameters);
  }
  minted_ += 1;
  if (trained_) {
    round_ = settled_round();
  }
  for (Neighbour& peer : peers_) {
    peer.lead.meet(pace().behind(peer), setup_.window);
  }
  phase_ = Phase::training;
}

void Site::give_up() {
  past_.add({incarnation_, setup_.life});
  incarnation_ = setup_.incarnation;
  ++resets_;
  mixing_.model->give_up();
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    mixing_.model->forget(k);
    close(k);
    // What still comes on its channel is about the incarnation that is gone.
    peers_[k].hang_up();
    peers_[k].agreed = peers_[k].claims_newer = false;
  }
  peers_.begin_anew();
  offered_ = 0;
  trained_ = false;
  beginning_.give_up();
  models_.clear();
  conduct_.give_up();
  loaded_ = outdated_ = false;
  sum_round_.give_up();
  steps_ = 0;
  phase_ = Phase::waiting;
}

Status Site::step(std::span<const float> gradient) {
  check(phase_ == Phase::training, "a site steps between ready and offer");
  check(gradient.size() == setup_.parameters.size(), "a gradient has the model's dimension");
  const Round number = round_ * setup_.communication_interval + steps_;
  if (Status status = mixing_.model->step(number, gradient); !status.ok()) {
    return here(status);
  }
  ++steps_;
  return {};
}

void Site::plan_steps(Round steps) {
  check(steps >= 1 && steps <= setup_.communication_interval, "a round has 1 … H steps");
  planned_ = steps;
}

Status Site::offer() {
  check(phase_ == Phase::training, "a site offers once a round");
  if (outdated_) {
    phase_ = Phase::offered;
    return {};
  }
  if (Status status = weigh_steps(); !status.ok()) {
    return here(status);
  }
  std::vector<Addressee> to;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    Neighbour& peer = peers_[k];
    const bool room = peer.out.items().size() < setup_.window;
    peer.habits.note_offer(!room && peer.told(), peer.channel.joining);
    if (peer.told() && room && !peer.draining) {
      to.push_back({.peer = k, .whole = peer.out.behind(), .observer = peer.observer});
    }
  }
  if (Status status =
          mixing_.model->offer(rounding_key(setup_.seed, incarnation_, round_), peers_.tells(), to);
      !status.ok()) {
    return here(status);
  }
  phase_ = Phase::offered;
  trained_ = true;
  offered_ = round_ + 1;
  steps_ = 0;
  post(to);  // before receipts, which say that the round's parcel, if there was one, has gone
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    peers_[k].in.make_durable();
    Neighbour& peer = peers_[k];
    peer.channel.unheard += 1;
    const bool waits = peer.heard() && peer.punctuality.waited_for() && pace().late(peer);
    if (peer.up() && (waits || peer.needs_receipt())) {
      confirm(k);
    }
  }
  return {};
}

void Site::confirm(std::size_t peer) {
  Neighbour& to = peers_[peer];
  to.channel.said = offered_;
  to.channel.confirmed = to.in.durable();
  outbox_.send(peer, encode(Receipt{.incarnation = to.known.incarnation,
                                    .applied = to.in.durable(),
                                    .round = offered_,
                                    .own_steps = planned_,
                                    .wants_whole = mixing_.copies != nullptr &&
                                                   mixing_.copies->wants_whole(peer)}));
}

Status Site::weigh_steps() {
  if (steps_ == 0 || setup_.step_weighting == StepWeighting::work) {
    return {};
  }
  double sum = static_cast<double>(planned_);
  double sites = 1;
  for (const Neighbour& peer : peers_) {
    if (peer.heard() && peer.channel.own_steps > 0) {
      sum += static_cast<double>(peer.channel.own_steps);
      sites += 1;
    }
  }
  const double factor = sum / sites / static_cast<double>(planned_);
  return factor == 1 ? Status() : mixing_.model->stretch(static_cast<float>(factor));
}

void Site::post(std::span<const Addressee> to) {
  std::vector<bool> reached(peers_.size());
  bool any = false;
  for (const Addressee& addressee : to) {
    if (addressee.payload == nullptr) {
      continue;
    }
    any = reached[addressee.peer] = true;
    peers_[addressee.peer].habits.note_given(addressee.mass);
    const Sequence sequence = peers_[addressee.peer].out.push(
        {.round = offered_, .mass = addressee.mass, .payload = addressee.payload}, addressee.whole);
    outbox_.send(
        addressee.peer,
        encode(Parcel{
            .incarnation = incarnation_, .sequence = sequence, .round = offered_, .payload = {}}),
        addressee.payload);
  }
  for (std::size_t k = 0; any && k < peers_.size(); ++k) {
    if (!reached[k]) {
      peers_[k].out.fall_behind();
    }
  }
}

std::vector<std::size_t> Site::awaited() const {
  if (sum_round_.asked()) {
    return SumRound::awaited(peers_, mixing_.sum()->owed());
  }
  std::vector<std::size_t> awaited;
  const SumHope hope = phase_ == Phase::offered ? hope_of_sum() : SumHope::enough;
  if (hope == SumHope::none) {
    return awaited;  // the sooner it is where the others are
  }
  for (std::size_t k = 0; k < peers_.size() && !outdated_; ++k) {
    const Neighbour& peer = peers_[k];
    const bool due = phase_ == Phase::waiting
                         ? peer.up() && peer.channel.model_due
                         : peer.heard() && !peer.channel.joining && pace().outstanding(peer) &&
                               (hope == SumHope::few || peer.punctuality.waited_for());
    if (due && phase_ != Phase::training && !peer.draining) {
      awaited.push_back(k);
    }
  }
  return awaited;
}

Pace Site::pace() const {
  return {.own = std::max(offered_, round_),  // a newcomer has offered none in its first round
          .slack = setup_.slack,
          .sums = mixing_.sum() != nullptr};
}

Status Site::collect() {
  check(phase_ == Phase::offered, "a site collects what it has offered for");
  if (outdated_) {
    give_up();
    return {};
  }
  if (sum_round_.asked()) {
    sum_round_.end(peers_, mixing_.sum()->owed());
  } else {
    begin_intake();
  }
  std::vector<MixedPeer> mixed;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    take_in(k);
    if (peers_[k].heard() && !peers_[k].draining) {
      mixed.push_back({.peer = k,
                       .degree = peers_[k].channel.degree,
                       .barred = peers_[k].credit(round_) != Credit::whole,
                       .part = peers_[k].part});
    }
  }
  if (Status status = mixing_.model->mix(peers_.size(), mixed); !status.ok()) {
    return here(status);
  }
  const bool weighs = setup_.exchange == MixingKind::push_sum && !setup_.observer;
  conduct_.end_intake(peers_, mixed,
                      {.offered = offered_,
                       .mass = weighs ? std::optional(mixing_.model->mass()) : std::nullopt,
                       .least_mass = setup_.mass.least});
  step_outside();
  settled_mass_ = mixing_.model->mass();
  round_ = next_round();
  phase_ = Phase::training;
  return {};
}

void Site::step_outside() {
  if (!outer_) {
    return;
  }
  const auto next = outer_->step(round_, setup_.parameters);
  if (!next.empty() && mixing_.model->move_to(next).ok()) {
    outer_->arrived(setup_.parameters);
  } else {
    outer_->begin(setup_.parameters);  // neighbours must not end this site
  }
}

void Site::keep_model() {
  mixing_.model->keep();
  if (outer_) {
    outer_->keep();
  }
}

void Site::begin_intake() {
  keep_model();
  // Where sites sum in secret one sends nothing as long as it has not met all others, as this site
  // may not have either.
  const bool all_send = mixing_.sum() == nullptr || std::ranges::all_of(peers_, &Neighbour::up);
  const bool timed = setup_.newcomer_s > 0 && time_.lasted > 0;
  conduct_.begin_intake(
      peers_, pace(),
      {.time = time_,
       .all_send = all_send,
       .newcomer_part = timed ? time_.lasted / setup_.newcomer_s : 1.0 / kNewcomerRounds});
  time_ = {};
}

std::optional<std::vector<Suspect>> Site::put_back() {
  check(phase_ == Phase::training, "a model is put back before it is offered");
  if (!conduct_.influenced()) {
    return std::nullopt;
  }
  const Status status = mixing_.model->put_back();
  check(status.ok(), "what was kept can be put back");
  if (outer_) {
    outer_->put_back();
  }
  const bool at_once = std::exchange(steps_, 0) == 0;
  return conduct_.put_back(peers_, round_, mixing_.model->longest_step(), at_once);
}

bool Site::due(const Neighbour& from) const {
  // In step, a peer is at most one round ahead, and what it sent for the next round waits. One that
  // has not waited for us is not waited for.
  const auto& pending = from.in.pending();
  if (mixing_.sum() != nullptr) {
    // A sum is of one round. The parcels of a peer that has run far ahead will never be in one.
    const Round round = pending.front().round;
    return round <= offered_ || round > offered_ + setup_.window;
  }
  const bool ahead = setup_.slack == 0 && pending.front().round == offered_ + 1;
  return !ahead || from.known.round > offered_ + 1;
}

void Site::take_in(std::size_t peer) {
  Neighbour& from = peers_[peer];
  if (from.in.pending().empty()) {
    return;
  }
  const Freshness::Rounds now = {.own = offered_, .theirs = from.in.pending().front().round};
  const Round fresh = mixing_.mass == nullptr ? Freshness::kFreshCopy : Freshness::kFreshParcel;
  const double part = from.freshness.part(now, fresh);
  while (!from.in.pending().empty() && due(from)) {
    const Round theirs = from.in.pending().front().round;
    const auto taken = mixing_.model->take_in(peer, from.in.pending().front().payload,
                                              {.credit = from.credit(round_), .part = part});
    if (!taken) {
      from.in.drop_pending();
      // The fault is told by the peer's state.
      (void)offence(peer, taken.status().fault(), taken.status().message());
      return;
    }
    from.influence.add(taken->influence);
    from.habits.note_returned(taken->counted);
    from.part = part;
    from.freshness.note({.own = offered_, .theirs = theirs});
    from.in.apply_first(taken->mass);
  }
}

Round Site::settled_round() {
  const std::optional<std::size_t> giver = beginning_.giver();
  return beginning_.settle(peers_.rounds_but_of(giver), giver ? peers_[*giver].entry.name : "");
}

Status Site::here(const Status& status) const {
  return status.with_context(fmt::format("site {}, round {}", setup_.name, round_));
}

// What it is.

SiteState Site::state() const {
  const MassBalance balance = mixing_.mass == nullptr ? MassBalance() : mixing_.mass->balance();
  return {.round = round_,
          .incarnation = incarnation_,
          .life = setup_.life,
          .has_model = trained_,
          .own_steps = planned_,
          .mass = mixing_.model->mass(),
          .settled_mass = phase_ == Phase::offered ? settled_mass_ : mixing_.model->mass(),
          .minted = minted_,
          .written_off = written_off_,
          .undelivered = bequest_.undelivered(peers_),
          .raised = balance.raised,
          .lowered = balance.lowered,
          .drained = conduct_.drained(),
          .longest_step = mixing_.model->longest_step(),
          .version = version({}),
          .resets = resets_,
          .giver = beginning_.began_by(),
          .round_said_by = beginning_.said_by(),
          .sums = mixing_.mean == nullptr ? SumCounts() : mixing_.mean->counts()};
}

std::uint64_t Site::version(std::optional<std::size_t> peer) const {
  return mixing_.copies == nullptr ? 0 : mixing_.copies->version(peer);
}

std::vector<PeerState> Site::peers() const {
  std::vector<PeerState> states;
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    states.push_back(peers_[k].state());
    states.back().version = version(k);
    states.back().barred = peers_[k].barred(round_);
  }
  return states;
}

std::size_t Site::max_message_bytes() const {
  return sites::max_message_bytes(setup_.parameters.size(), mixing_.model->max_payload());
}

}  // namespace sotto::sites
