// One site of a federation, as a pure state machine (sans-IO): no socket, clock, thread or file.
// The same object runs in `sotto node` and in the simulator of faults (sim/federation.h).
//
// What its driver does:
//   without state, and whenever state().incarnation is a new one: save; write durably
//   peer_up / peer_down / receive, and released() → send      as they happen, at any time
//   in each round:
//     until ready(): wait                       a site that comes late waits for a model
//     H × step(gradient at parameters())
//     offer(); save; write durably; released() → send         nothing leaves before it is durable
//     until complete() or patience is over: wait
//     collect()
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
// which stops this one unless as many others are up and agree with it.
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
#include <sotto/base/parameter_layout.h>
#include <sotto/base/status.h>
#include <sotto/compress/compressor.h>
#include <sotto/kernels/ops.h>
#include <sotto/optim/federated/mass_rule.h>
#include <sotto/optim/federated/message.h>
#include <sotto/optim/federated/pull_bound.h>
#include <sotto/optim/step_rule.h>

namespace sotto::federated {

/// How models are brought together.
enum class Exchange : std::uint8_t {
  push_sum,  ///< mass moves along trust, one-sided or mutual (push_sum_mixing.h)
  gossip,    ///< public copies along mutual trust, averaged or by a robust rule (gossip_mixing.h)
};

/// Whom a site knows. Peers are named by their place in the list, from 0. What a site sends to a
/// peer that does not hear it, it keeps.
struct SitePeer {
  std::string name;
  bool hears = true;  ///< this site takes in what the peer sends
  bool tells = true;  ///< this site sends to it
};

/// What a site is made of.
struct SiteSetup {
  std::string name;
  /// Digest of all that sites must share: exchange, rule, dimension, compressor, H, window.
  Agreement agreement{};
  /// The same in words, told to peers that have others; at most kMaxText bytes.
  std::string settings = {};
  std::vector<SitePeer> peers;
  std::span<float> parameters;  ///< z; initialised
  ParameterLayout layout = {};
  std::unique_ptr<StepRule> step_rule;
  std::unique_ptr<Compressor> compressor;
  Exchange exchange = Exchange::push_sum;
  std::string rule = {};  ///< gossip: make_aggregation's; empty: the average
  std::optional<double> consensus_stepsize = {};
  Round communication_interval = 1;  ///< H
  Round slack = 0;                   ///< rounds that a peer may be behind before it is waited for
  std::size_t window = 2;            ///< parcels under way to a peer, at most; slack + 2 keeps pace
  /// It takes in what comes, sends nothing and takes no step: push-sum. Its peers lose nothing.
  bool observer = false;
  double mass_cap = 1024;       ///< more in a message or a state cannot be right
  MassRule mass = {};           ///< push-sum; all sites share it
  PullLimits pull = {};         ///< of what one parcel may do to the model
  Round rounds = 0;             ///< after which this site ends; 0: never
  std::uint64_t seed = 0;       ///< of rounding
  Incarnation incarnation = 0;  ///< not 0; drawn anew in each start. load replaces it, and the site
                                ///< takes it should it have to give up what was loaded
  std::uint32_t life = 1;       ///< larger in each start of the process, also where its state is
                                ///< gone: as far as a clock can tell (trainers' SiteFolder)
  const Ops* ops = &host_ops();
};

/// What a peer does that no rule forbids, and that its operator should be asked about.
enum class PeerHabit : std::uint8_t {
  none,
  takes,             ///< it has taken much more mass than it gave, and this site's is low
  mints,             ///< its parcels have had more mass for long than one may have
  far_ahead,         ///< it says that it has come to a round that it cannot have come to
  confirms_nothing,  ///< its window has been full for long: it gives no receipts
  sends_nothing,     ///< it may send, says that it does, and has not for long
};

/// For an operator, and for the invariants that tests hold.
struct PeerState {
  std::string name;
  bool up = false;                       ///< connected, and both have said hello
  std::optional<RefusalReason> refused;  ///< we refused it, or it us; `trouble` has it in words
  std::string trouble;
  std::string settings;   ///< those of a peer that refuses ours, as it tells them
  bool hears_us = false;  ///< while it is up: it takes in what this site sends
  bool tells_us = false;  ///< … it sends to this site
  Incarnation incarnation = 0;
  std::uint32_t life = 0;
  Round round = 0;          ///< rounds in which it has offered, as heard of last
  Sequence sent = 0;        ///< parcels of our stream that were made
  Sequence receipts = 0;    ///< … and are durable there
  Sequence applied = 0;     ///< parcels of its stream that are in our state
  std::size_t pending = 0;  ///< arrived, not yet applied
  double given = 0;      ///< mass in all parcels made, of the stream between the two incarnations
  double taken = 0;      ///< mass in all its parcels that are in our state
  double under_way = 0;  ///< mass in parcels without a receipt
  std::uint64_t version = 0;   ///< gossip: of its public copy, as followed here; 0: not followed
  std::uint64_t offences = 0;  ///< messages that broke a rule
  bool observer = false;       ///< it only takes, and says so: no mass goes to it
  double moved = 0;            ///< how far it moved the model when a round was collected last
  std::uint64_t cut = 0;       ///< pulls of its parcels that were cut to the bound
  std::uint64_t spoiled = 0;   ///< times that the model had to be put back, with its parcels in it
  std::uint64_t blamed = 0;  ///< … and that they alone had moved the model far; and absurd pulls
  bool barred = false;       ///< until later what it sends counts as this site's own model
  PeerHabit habit = PeerHabit::none;
  bool waited_for = true;  ///< false: it was late again and again
};

/// How a site stands, for an operator and for checks.
struct SiteState {
  Round round = 0;
  Incarnation incarnation = 0;
  std::uint32_t life = 0;
  bool has_model = false;
  double mass = 0;         ///< ω; 0 before ready()
  double minted = 0;       ///< by all incarnations that this state remembers
  double written_off = 0;  ///< mass given to incarnations of peers that are gone
  double raised = 0;       ///< mass that it made so that its own comes back to 1
  double lowered = 0;      ///< … that it took away likewise, or cut off parcels that had too much
  bool drained = false;    ///< ω has been near its floor for long
  double longest_step = 0;    ///< of the last rounds, by which pulls are bounded
  std::uint64_t version = 0;  ///< gossip: of the own public copy
  std::uint64_t resets = 0;
};

/// A peer whose parcels were in the model when that had to be put back.
struct Suspect {
  std::size_t peer = 0;
  double moved = 0;     ///< how far they moved it
  bool blamed = false;  ///< it moved the model nine times as far as all who are not blamed together
  bool barred = false;  ///< it was blamed before: for a while its parcels count no more
};

/// A message that may go out now.
struct Released {
  std::size_t peer = 0;
  std::vector<std::byte> message = {};
  bool hang_up = false;  ///< no message: close the channel; the two may meet anew
};

class Site {
 public:
  virtual ~Site() = default;

  // What happens to it.

  /// The channel to a peer is open; a hello is due.
  virtual void peer_up(std::size_t peer) = 0;
  /// The channel to a peer is gone.
  virtual void peer_down(std::size_t peer) = 0;
  /// A message of a peer that is up. A fault names the peer and what it did; the state is then
  /// unchanged but for the count, all else that comes before peer_down is dropped, and released()
  /// asks to close the channel.
  virtual Status receive(std::size_t peer, std::span<const std::byte> message) = 0;
  /// The list of peers changed; places are those of the new list from now on, also in what
  /// released() hands out. Peers are known by name, and keep what is between them and this site;
  /// parcels to who is gone are written off, and its channel is the caller's to close. Who comes
  /// back to the list is met as one that was away. Throws Error as make_site.
  virtual void update_peers(const std::vector<SitePeer>& peers) = 0;
  /// Fault::unexpected once another process with this site's key was seen to have begun later: the
  /// caller must stop, and write nothing any more.
  virtual Status alive() const = 0;

  // Its round.

  /// There is a model to train: at the start the initial one if nobody has a better, else a
  /// neighbour's. `waited` says that the caller will wait no longer for peers that are not there.
  /// A peer that is up and has promised its model is waited for in any case: one that does not
  /// deliver is the caller's to take down.
  virtual bool ready(bool waited) = 0;
  /// The model at which gradients are taken.
  virtual std::span<const float> parameters() const = 0;
  /// Local steps done.
  virtual Round round() const = 0;
  /// A local step. Fault::non_finite as in Algorithm::take_gradient; the state is then unchanged.
  virtual Status step(std::span<const float> gradient) = 0;
  /// After a gradient or loss at parameters() that is not finite, or a step that failed so: the
  /// model is again what it was before the last collect, or before a neighbour's was taken over,
  /// and the round's steps begin anew. Says whose parcels were in it, the farthest first; nothing:
  /// nothing has come since, nothing has changed, and the trouble is the site's own.
  virtual std::optional<std::vector<Suspect>> put_back() = 0;
  /// Those whose parcels are in the model since the last collect, the farthest first.
  virtual std::vector<Suspect> influences() const = 0;
  /// Makes the round's parcels, for peers that are up and have room in their window; receipts too.
  virtual Status offer() = 0;
  /// What may be sent now that the state, as it was after offer, is durable. Hellos, refusals and
  /// models are among it at any time.
  virtual std::vector<Released> released() = 0;
  /// All peers that are up and heard have come as far as this round, less the slack; who is behind
  /// by more than slack and window is not waited for.
  virtual bool complete() const = 0;
  /// Those that complete() waits for; before ready(), those that owe a model.
  virtual std::vector<std::size_t> awaited() const = 0;
  /// Takes in what has come, and ends the round. A parcel that does not decode costs its peer an
  /// offence and is not applied.
  virtual Status collect() = 0;

  // What it is.

  /// The longest message that a peer may send, or is sent.
  virtual std::size_t max_message_bytes() const = 0;
  /// How the site stands.
  virtual SiteState state() const = 0;
  /// How each peer stands, in the order of the setup.
  virtual std::vector<PeerState> peers() const = 0;
  /// Gossip: the public copy x̂ of a peer as it is followed here, or of this site itself; empty:
  /// none. Copies of one incarnation and version are equal, bit for bit.
  virtual std::span<const float> public_copy(std::optional<std::size_t> peer) const = 0;

  /// The whole state, parameters included. Allowed at any time but between step and offer.
  virtual void save(ByteBuffer& out) const = 0;
  /// Takes back what save wrote under the same agreement; before anything else. Peers that only the
  /// saved state knows have left the list. A round that was offered counts as ended. On a fault the
  /// site must be discarded.
  virtual Status load(ByteReader& in) = 0;
};

/// The format of a state that save wrote, as it begins; this program reads state_format() alone.
std::string format_of_state(std::span<const std::byte> state);
/// "site 2"
std::string_view state_format();

/// Throws Error for numbers that cannot work together.
void admit_bounds(const MassRule& mass, const PullLimits& pull, double mass_cap = 1024);

/// Throws Error for a setting or pairing that is refused: gossip with one-sided trust, a robust
/// rule with push-sum (no rule is proven there), a compressor outside its contract.
std::unique_ptr<Site> make_site(SiteSetup setup);

}  // namespace sotto::federated
