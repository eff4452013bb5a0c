// What a site does so that its neighbours' models are summed without being shown.
#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <sotto/sites/core/secure_sum.h>
#include <sotto/sites/core/site.h>

namespace sotto::sites {

bool Site::ask_for_sum() {
  SecureSum* sum = mixing_->secure_sum();
  if (sum == nullptr || phase_ != Phase::offered || asked_ || outdated_) {
    return false;
  }
  begin_intake();
  note_late_answers();
  auto question = sum->close();
  asked_ = true;
  question_ = offered_;
  tell(sum->answers_due());
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    take_in(k);
  }
  if (question) {
    question->incarnation = incarnation_;
    for (const std::size_t k : sum->members()) {
      if (peers_[k].up()) {
        peers_[k].channel.questioned = true;
        send(k, encode(*question));
      }
    }
  }
  return true;
}

void Site::tell(std::vector<std::pair<std::size_t, Masks>> answers) {
  for (auto& [peer, answer] : answers) {
    if (peers_[peer].up()) {
      answer.incarnation = incarnation_;
      send(peer, encode(answer));
    }
  }
}

Status Site::take(std::size_t peer, const SumKey& key) {
  if (Status status = expect(peer, key.incarnation, peers_[peer].known.incarnation); !status) {
    return status;
  }
  SecureSum* sum = mixing_->secure_sum();
  if (sum == nullptr || std::exchange(peers_[peer].channel.keyed, true)) {
    return offence(peer, Fault::unexpected, "a key for sums that is not wanted");
  }
  if (!sum->take_key(peer, key.key)) {
    return offence(peer, Fault::unexpected, "a key for sums that everybody could have made");
  }
  return {};
}

Status Site::take(std::size_t peer, const Unmask& question) {
  if (Status status = expect(peer, question.incarnation, peers_[peer].known.incarnation); !status) {
    return status;
  }
  SecureSum* sum = mixing_->secure_sum();
  if (sum == nullptr || !peers_[peer].told()) {
    return offence(peer, Fault::unexpected, "a question about a sum that is not made");
  }
  auto revealed = sum->answer(peer, question);
  if (!revealed) {
    return offence(peer, revealed.status().fault(), revealed.status().message());
  }
  if (*revealed) {
    tell({{peer, {.round = question.round, .revealed = std::move(**revealed)}}});
  }
  return {};
}

Status Site::take(std::size_t peer, const Masks& answer) {
  if (Status status = expect(peer, answer.incarnation, peers_[peer].known.incarnation); !status) {
    return status;
  }
  SecureSum* sum = mixing_->secure_sum();
  if (sum == nullptr) {
    return offence(peer, Fault::unexpected, "masks for a sum that is not made");
  }
  peers_[peer].channel.answered = peers_[peer].channel.answered || answer.round == question_;
  sum->take(peer, answer);
  return {};
}

void Site::note_answers() {
  const std::vector<std::size_t> owed = mixing_->secure_sum()->owed();
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    Neighbour& peer = peers_[k];
    if (!peer.channel.questioned || !peer.heard() || !peer.answering.waited_for()) {
      continue;
    }
    const bool in_vain = std::ranges::find(owed, k) != owed.end();
    // The sum may have been made before it was its turn.
    if (in_vain || peer.channel.answered) {
      peer.answering.note(!in_vain);
    }
  }
}

void Site::note_late_answers() {
  // An answer of a peer that is not waited for always comes too late for a sum that needs it. So it
  // counts as in time until the next question: a peer that was slow for a while is waited for
  // again.
  for (Neighbour& peer : peers_) {
    if (peer.channel.questioned && peer.heard() && !peer.answering.waited_for()) {
      peer.answering.note(peer.channel.answered);
    }
    peer.channel.questioned = peer.channel.answered = false;
  }
}

Site::SumHope Site::sum_hope() const {
  const SecureSum* sum = mixing_->secure_sum();
  if (sum == nullptr) {
    return SumHope::enough;
  }
  std::size_t come = 0;
  std::size_t may_come = 0;
  for (const Neighbour& peer : peers_) {
    const bool has_come = std::ranges::any_of(
        peer.in.pending(), [&](const InStream::Item& parcel) { return parcel.round == offered_; });
    come += peer.heard() && has_come ? 1U : 0U;
    may_come += peer.heard() && (has_come || peer.known.round <= offered_) ? 1U : 0U;
  }
  return may_come < sum->least_members() ? SumHope::none
         : come < sum->least_members()   ? SumHope::few
                                         : SumHope::enough;
}

Round Site::next_round() const {
  if (mixing_->secure_sum() == nullptr) {
    return offered_;
  }
  std::vector<Round> said;
  for (const Neighbour& peer : peers_) {
    if (peer.heard() && peer.known.round > 0) {
      said.push_back(peer.known.round);
    }
  }
  // At least one of this many sites is honest, so an honest one has reached the round.
  const std::size_t least = mixing_->secure_sum()->least_members();
  if (said.size() < least) {
    return offered_;
  }
  std::ranges::sort(said, std::greater());
  const Round usual = said[least - 1];
  // In step, too, others may be in the next round already; not for long without a sum. Those that
  // have enough parcels without this site's will have gone on by its next offer, others wait there.
  const Round ahead = mixing_->sums().lost_in_a_row > 1 ? 0 : 1;
  const auto there = static_cast<std::size_t>(
      std::ranges::count_if(said, [&](Round round) { return round >= usual; }));
  if (usual > offered_ + ahead && (setup_.rounds == 0 || usual < setup_.rounds)) {
    return there > least ? usual : usual - 1;
  }
  return offered_;
}

}  // namespace sotto::sites
