#include <sotto/sites/epochs/epoch_vote.h>

#include <algorithm>

#include <sotto/base/check.h>
#include <sotto/sites/epochs/epoch_message.h>

namespace sotto::sites {

bool EpochVote::prepare(const Ballot& ballot) {
  highest_ = std::max(highest_, ballot.number);
  if (ballot < promised_ || ballot.number == 0) {
    return false;
  }
  promised_ = ballot;
  return true;
}

bool EpochVote::accept(const Ballot& ballot, const EpochValue& value) {
  if (!prepare(ballot)) {
    return false;
  }
  accepted_ = {ballot, value};
  return true;
}

const Ballot& EpochVote::propose(const EpochNode& self) {
  proposal_ = {++highest_, self};
  promises_.clear();
  chosen_.reset();
  accepting_.clear();
  return *proposal_;
}

void EpochVote::choose(const EpochValue& value) {
  check(proposal_ && !chosen_, "a proposal gets one value");
  chosen_ = value;
}

void EpochVote::outvoted(const Ballot& ballot) { highest_ = std::max(highest_, ballot.number); }

void EpochVote::save(ByteBuffer& out) const {
  // A proposer that returns must not use a number again for another value, either.
  out.write(highest_);
  write_ballot(promised_, out);
  out.write(static_cast<std::uint8_t>(accepted_.has_value()));
  if (accepted_) {
    write_accepted(*accepted_, out);
  }
}

Status EpochVote::load(ByteReader& in) {
  EpochVote read;
  read.highest_ = in.read<std::uint64_t>();
  bool whole = read_ballot(in, read.promised_);
  const auto accepted = in.read<std::uint8_t>();
  if (whole && accepted == 1) {
    whole = read_accepted(in, read.accepted_.emplace());
  }
  if (!whole || in.failed() || accepted > 1) {
    return {Fault::malformed, "votes of a founder that are damaged"};
  }
  *this = read;
  return {};
}

}  // namespace sotto::sites
