// What a site does so that its neighbours' models are summed without being shown.
#include <utility>
#include <vector>

#include <sotto/sites/core/secure_sum.h>
#include <sotto/sites/core/site.h>

namespace sotto::sites {

bool Site::ask_for_sum() {
  SecureSum* sum = mixing_.sum();
  if (sum == nullptr || phase_ != Phase::offered || sum_round_.asked() || outdated_) {
    return false;
  }
  begin_intake();
  sum_round_.ask(offered_, peers_);
  auto question = sum->close();
  tell(sum->answers_due());
  for (std::size_t k = 0; k < peers_.size(); ++k) {
    take_in(k);
  }
  if (question) {
    question->incarnation = incarnation_;
    for (const std::size_t k : sum->members()) {
      if (peers_[k].up()) {
        peers_[k].channel.questioned = true;
        outbox_.send(k, encode(*question));
      }
    }
  }
  return true;
}

void Site::tell(std::vector<std::pair<std::size_t, Masks>> answers) {
  for (auto& [peer, answer] : answers) {
    if (peers_[peer].up()) {
      answer.incarnation = incarnation_;
      outbox_.send(peer, encode(answer));
    }
  }
}

Status Site::take(std::size_t peer, const SumKey& key) {
  if (Status status = expect(peer, key.incarnation, peers_[peer].known.incarnation); !status.ok()) {
    return status;
  }
  SecureSum* sum = mixing_.sum();
  if (sum == nullptr || std::exchange(peers_[peer].channel.keyed, true)) {
    return offence(peer, Fault::unexpected, "a key for sums that is not wanted");
  }
  if (!sum->take_key(peer, key.key)) {
    return offence(peer, Fault::unexpected, "a key for sums that everybody could have made");
  }
  return {};
}

Status Site::take(std::size_t peer, const Unmask& question) {
  if (Status status = expect(peer, question.incarnation, peers_[peer].known.incarnation);
      !status.ok()) {
    return status;
  }
  SecureSum* sum = mixing_.sum();
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
  if (Status status = expect(peer, answer.incarnation, peers_[peer].known.incarnation);
      !status.ok()) {
    return status;
  }
  SecureSum* sum = mixing_.sum();
  if (sum == nullptr) {
    return offence(peer, Fault::unexpected, "masks for a sum that is not made");
  }
  sum_round_.answered(peers_[peer], answer.round);
  sum->take(peer, answer);
  return {};
}

SumHope Site::hope_of_sum() const {
  const SecureSum* sum = mixing_.sum();
  return sum == nullptr ? SumHope::enough : sum_hope(peers_, offered_, sum->least_members());
}

Round Site::next_round() const {
  const SecureSum* sum = mixing_.sum();
  return sum == nullptr ? offered_
                        : round_after(peers_, offered_, sum->least_members(),
                                      mixing_.mean->counts().lost_in_a_row, setup_.rounds);
}

}  // namespace sotto::sites
