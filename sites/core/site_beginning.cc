// How a site begins: from its own model or a neighbour's, and in which round; and how it gives up
// what it was, to begin anew.
#include <algorithm>

#include <sotto/sites/core/conduct/pace.h>
#include <sotto/sites/core/pull_bound.h>
#include <sotto/sites/core/site.h>

namespace sotto::sites {

bool Site::try_begin(bool waited) {
  if (self_.outdated) {
    give_up();
  }
  if (self_.phase != RoundPhase::waiting) {
    return true;
  }
  if (!self_.trained && !models_.empty() && (waited || !may_hear_second_model())) {
    take_over_model();
  }
  if (!self_.trained && !models_.empty()) {
    return false;
  }
  if (self_.trained && !waited && beginning_.doubtful() && !peers_.has_second_opinion()) {
    return false;
  }
  bool all_there = true;
  bool begun = false;
  for (const Neighbour& peer : peers_) {
    if (!self_.trained && peer.up() && peer.channel.model_due) {
      return false;
    }
    all_there = all_there && (peer.up() || !peer.entry.hears);
    begun = begun || (peer.heard() && peer.known.round > 0);
  }
  if (self_.trained || begun || all_there || waited) {
    begin();
  }
  return self_.phase != RoundPhase::waiting;
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
  const OfferedModel model = models_.choose(self_.setup.parameters);
  if (outer_) {
    outer_->begin(
        self_.setup.parameters);  // where the site goes back to, should this one be spoilt
  }
  keep_model();
  conduct_.took_over(peers_[model.peer], distance_between(model.values, self_.setup.parameters));
  self_.setup.ops->copy(model.values, self_.setup.parameters);
  self_.trained = true;
  beginning_.take_over(model.peer, model.round);
}

void Site::begin() {
  mixing_->begin();
  if (outer_) {
    outer_->begin(self_.setup.parameters);
  }
  self_.minted += 1;
  if (self_.trained) {
    self_.round = settled_round();
  }
  const Pace pace = pace_of(self_);
  for (Neighbour& peer : peers_) {
    peer.lead.meet(pace.behind(peer), self_.setup.window);
  }
  self_.phase = RoundPhase::training;
}

void Site::give_up() {
  self_.past.add({self_.incarnation, self_.setup.life});
  self_.incarnation = self_.setup.incarnation;
  ++self_.resets;
  mixing_->give_up();
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    mixing_->forget(k);
    talk_.close(k);
    // What still comes on its channel is about the incarnation that is gone.
    peers_[k].hang_up();
    peers_[k].agreed = peers_[k].claims_newer = false;
  }
  peers_.begin_anew();
  self_.offered = 0;
  self_.trained = false;
  beginning_.give_up();
  models_.clear();
  conduct_.give_up();
  self_.loaded = self_.outdated = false;
  sum_round_.give_up();
  steps_ = 0;
  self_.phase = RoundPhase::waiting;
}

Round Site::settled_round() {
  const std::optional<std::size_t> giver = beginning_.giver();
  return beginning_.settle(peers_.rounds_but_of(giver), giver ? peers_[*giver].entry.name : "");
}

}  // namespace sotto::sites
