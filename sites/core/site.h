// One site, as a pure state machine (sans-IO): no socket, clock, thread or file.
// `sotto node` and the simulator of faults (sites/simulated/simulated_sites.h) both run this class.
//
// What its driver does:
//   without state, and whenever state().incarnation is a new one: save; write durably
//   peer_up / peer_down / receive, and released() → send      as they happen, at any time
//   in each round:
//     until try_begin(): wait                       a site that comes late waits for a model
//     H_i × step(gradient at parameters()), H_i ≤ H
//     offer(); save; write durably; released() → send         nothing leaves before it is durable
//     until complete() or patience is over: wait
//     if ask_for_sum(): released() → send; until complete() or patience is over: wait
//     collect()
//   to leave for good: hand_over(); save; write durably; released() → send; until delivered(): wait
// Between offer and the end of the write, released() is not called. Messages that it hands out are
// sent in their order; those to a peer that is down are dropped, for what matters is sent again
// when it is back.
//
// Why nothing is lost or counted twice. A site that dies returns as it last wrote itself, and all
// that it ever sent or acknowledged is in that state: a parcel is kept until its receipt, a receipt
// is sent when what it tells of is durable, and a parcel that comes twice is known by its number.
// A site whose state is gone or too old says so by a new incarnation, and starts from a
// neighbour's model; what it held is written off, never guessed (docs/sites.md).
//
// What a liar among the peers can do. It cannot name another site, nor change anything by a message
// that breaks a rule. It can make a site that was loaded give its state up, once for each start of
// its process, and only until the two have agreed; later it can claim that a newer process runs,
// which stops this one if most of the listed peers that it has ever met say so.
//
// Thread safety: one thread at a time. Ownership: the parameters are the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/shared_bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/beginning.h>
#include <sotto/sites/core/conduct/conduct.h>
#include <sotto/sites/core/leaving.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/mixing/make_mixing.h>
#include <sotto/sites/core/neighbours.h>
#include <sotto/sites/core/offered_models.h>
#include <sotto/sites/core/outbox.h>
#include <sotto/sites/core/outer_step.h>
#include <sotto/sites/core/peer_talk.h>
#include <sotto/sites/core/site_self.h>
#include <sotto/sites/core/site_setup.h>
#include <sotto/sites/core/site_state.h>
#include <sotto/sites/core/sums/sum_round.h>

namespace sotto::sites {

class Site final {
 public:
  /// Throws Error for a setting or pairing that is refused: gossip with one-sided trust, a robust
  /// rule with push-sum (no rule is proven there), a compressor outside its contract.
  explicit Site(SiteSetup setup);
  ~Site() = default;
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  // What happens to it.

  /// The channel to a peer is open; a hello is due.
  void peer_up(std::size_t peer) { talk_.open(peer); }
  /// The channel to a peer is gone.
  void peer_down(std::size_t peer) { talk_.down(peer); }
  /// A message of a peer that is up. A fault names the peer and what it did; the state is then
  /// unchanged but for the count, all else that comes before peer_down is dropped, and released()
  /// asks to close the channel.
  Status receive(std::size_t peer, const SharedBytes& message) {
    return talk_.receive(peer, message);
  }
  /// The list of peers changed; places are those of the new list from now on, also in what
  /// released() hands out. Peers are identified by name and keep their streams; parcels to a
  /// removed peer are written off, and the caller closes its channel. A peer that comes back to the
  /// list is treated as one that was away. Throws Error as the constructor.
  void update_peers(const std::vector<SitePeer>& peers);
  /// Fault::unexpected once another process with this site's key was seen to have begun later: the
  /// caller must stop, and write nothing any more.
  Status alive() const { return self_.alive; }

  // The verbs of a round, in their order.

  /// Begins, unless the site has begun, as soon as there is a model to train: at the start the
  /// initial model if no peer has a better one, else a neighbour's. True once it has begun.
  /// `waited` says that the caller will not wait longer for absent peers, nor for a second model
  /// where one came. A peer that is up and has promised its model is waited for in any case where
  /// none came: one that does not deliver is the caller's to take down.
  bool try_begin(bool waited);
  /// The model at which gradients are taken.
  std::span<const float> parameters() const { return self_.setup.parameters; }
  /// The number of rounds that are over.
  Round round() const { return self_.round; }
  /// Sets the steps of the next rounds, H_i, 1 … H. By default H.
  void plan_steps(Round steps);
  /// A local step. Fault::non_finite as in Algorithm::take_gradient; the state is then unchanged.
  Status step(std::span<const float> gradient);
  /// After a gradient or loss at parameters() that is not finite, or a step that failed so: the
  /// model is again what it was before the last collect, or before a neighbour's was taken over,
  /// and the round's steps begin anew. Returns the peers whose parcels were in the model, the
  /// farthest first; no value if no parcel has come since: then nothing has changed, and the fault
  /// is the site's own.
  std::optional<std::vector<Suspect>> put_back();
  /// The peers whose parcels entered the model in the last collect, the farthest first.
  std::vector<Suspect> influences() const { return Conduct::influences(peers_); }
  /// Makes the round's parcels, for peers that are up and have room in their window; receipts too.
  /// The steps count as SiteSetup::step_weighting says; Fault::non_finite where that overflows.
  Status offer();
  /// In secure sums: asks the peers that sent parcels, once in a round, for what the sum needs
  /// besides. True if answers are to be awaited as parcels were, by complete(), before collect().
  /// False at once for other exchanges.
  bool ask_for_sum();
  /// The messages that may be sent now that the state, as it was after offer, is durable. Hellos,
  /// refusals and models are among them at any time.
  std::vector<Released> released() { return talk_.released(); }
  /// Whether all peers that are up and heard have reached this round, less the slack and the
  /// lead that this site may have (lead.h).
  bool complete() const { return awaited().empty(); }
  /// The peers that complete() waits for; before try_begin(), the peers that owe a model.
  std::vector<std::size_t> awaited() const;
  /// How long the round has taken, and the wait for parcels, before ask_for_sum() or else
  /// collect(): for who is late again and again (punctuality.h). A caller without a clock leaves it
  /// out.
  void note_time(const RoundTime& time) { time_ = time; }
  /// Takes in what has come, and ends the round. A parcel that does not decode costs its peer an
  /// offence and is not applied.
  Status collect();

  // Leaving for good, between two rounds.

  /// These, and no others, leave, or are about to be taken from the list: they get no parcels any
  /// more, are not waited for, and with gossip the model is not mixed with theirs.
  void set_draining(const std::vector<DrainingPeer>& peers) { peers_.set_draining(peers); }
  /// Whether nothing has come in the last rounds of those that are up, and nothing waits.
  bool quiet() const { return peers_.quiet(); }
  /// With push-sum: makes one parcel of all that the site holds, for one heir, after which it holds
  /// nothing; save, write durably and send, as after offer. It never chooses a second heir, unless
  /// the first shows a new incarnation: then nobody has the parcel, which is taken back. False:
  /// there is nobody who could take it, or nothing to give.
  bool hand_over();
  /// Whether all has been handed over; false again where it was taken back.
  bool has_left() const { return leaving_.bequest().given(); }
  /// The name of the peer that was given all; empty: none was.
  const std::string& heir() const { return leaving_.bequest().heir(); }
  /// Whether all parcels to those that are up have their receipts, the heir's among them. Never
  /// again where the heir left the list before its receipt.
  bool delivered() const { return leaving_.bequest().delivered(peers_); }

  // What it is.

  /// The longest message that a peer may send, or is sent.
  std::size_t max_message_bytes() const;
  /// The state of the site.
  SiteState state() const;
  /// The state of each peer, in the order of the setup.
  std::vector<PeerState> peers() const;
  /// The name of the peer in this place.
  const std::string& peer_name(std::size_t peer) const { return peers_[peer].entry.name; }
  /// Gossip: the public copy x̂ of a peer as it is followed here, or of this site itself; empty:
  /// none. Copies of one incarnation and version are equal, bit for bit.
  std::span<const float> public_copy(std::optional<std::size_t> peer) const {
    return mixing_->public_copy(peer);
  }

  /// The whole state, parameters included. Allowed at any time but between step and offer.
  void save(ByteBuffer& out) const;
  /// After load: what was loaded need not be the last that others know of this site. It begins anew
  /// in try_begin, with a new incarnation, from a neighbour's model if there is one, and else from
  /// the one that was loaded.
  void disown_past() {
    self_.outdated = true;
    beginning_.disown(self_.round);
  }
  /// Takes back what save wrote under the same agreement; before anything else. Peers that only the
  /// saved state knows have left the list. A round that was offered counts as ended. On a fault the
  /// site must be discarded.
  Status load(ByteReader& in);

 private:
  void begin();
  void give_up();
  /// Whether a neighbour may still give a second model to begin from.
  bool may_hear_second_model() const;
  /// Begins from one of the models that neighbours gave.
  void take_over_model();
  /// The round in which the site begins that took a neighbour's model over.
  Round settled_round();
  /// Makes the steps of the round count as the weighting says.
  Status weigh_steps();
  /// Whether the round that is offered can have a secure sum; `enough` where none is made.
  SumHope hope_of_sum() const;
  /// Whether the first pending parcel is for this round.
  bool due(const Neighbour& from, Round round) const;
  void take_in(std::size_t peer);
  /// The round after the one that is offered.
  Round next_round() const;
  /// Keeps the model, for put_back.
  void keep_model();
  /// The outer step rule takes what the round made of the model.
  void step_outside();
  /// The round's parcels are about to be taken in.
  void begin_intake();

  Status load_self(ByteReader& in);
  Status load_peers(ByteReader& in);

  std::unique_ptr<Mixing> mixing_;
  std::optional<OuterStep> outer_;  ///< none: what was mixed is the model
  SiteSelf self_;
  Neighbours peers_;
  Conduct conduct_;
  Beginning beginning_;
  OfferedModels models_;
  SumRound sum_round_;
  Leaving leaving_;
  PeerTalk talk_;
  Round steps_ = 0;          // steps taken in this round
  double settled_mass_ = 0;  // state()
  RoundTime time_;           // of the round that is offered
};

/// The format of a state that save wrote, as it begins; this program reads state_format() alone.
std::string format_of_state(std::span<const std::byte> state);
/// "site 2"
std::string_view state_format();

}  // namespace sotto::sites
