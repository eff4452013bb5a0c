// One peer of a site: what is remembered of it, the two streams, and how far the present channel
// has come.
//
// A building block of Site, not for users. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/conduct/freshness.h>
#include <sotto/sites/core/conduct/lead.h>
#include <sotto/sites/core/conduct/peer_habits.h>
#include <sotto/sites/core/conduct/punctuality.h>
#include <sotto/sites/core/hello_verdict.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/mixing/influence.h>
#include <sotto/sites/core/parcel_stream.h>
#include <sotto/sites/core/site_setup.h>
#include <sotto/sites/core/site_state.h>

namespace sotto::sites {

inline constexpr std::size_t kMostName = 256;  ///< longest name of a site, in bytes

/// How far the channel to a peer has come.
enum class ChannelStage : std::uint8_t {
  down,
  greeting,  ///< the peer's hello has not come yet
  up,
  refused,  ///< the peer's messages are dropped until the channel closes
};

/// What one channel to a peer has brought. A new channel has brought nothing.
struct PeerChannel {
  ChannelStage stage = ChannelStage::down;
  bool asked = false;        ///< our hello asked for the peer's model, and it has not come
  bool model_due = false;    ///< the peer's hello promised that model
  bool joining = false;      ///< the peer has got our model, and has not begun yet
  bool keyed = false;        ///< the peer's key for sums has come
  Round questioned = 0;      ///< round of the latest sum, if the peer was asked in it; 0: not
  bool answered = false;     ///< the peer has answered in that sum, in time or not
  bool hears_us = false;     ///< the peer's hello says that it takes in what we send
  bool tells_us = false;     ///< the peer's hello says that it sends to us
  Round own_steps = 0;       ///< H_j from the peer's receipts; 0: none has come
  std::uint32_t degree = 0;  ///< number of sites that the peer lists
  Round said = 0;            ///< rounds that this site has offered, as it told the peer last
  Sequence confirmed = 0;    ///< the peer's parcels that the latest receipt confirms
  Round unheard = 0;         ///< rounds that were offered since the peer's latest message
};

struct Neighbour {
  SitePeer entry;

  // Durable.
  Acquaintance known;
  OutStream out;
  InStream in;
  std::uint64_t cut = 0;      ///< pulls of its parcels that were cut to the bound
  std::uint64_t spoiled = 0;  ///< times that the model had to be put back, its parcels in it
  std::uint64_t blamed = 0;   ///< times that take_blame was called
  Round barred_until = 0;     ///< the round of this site from which its parcels count again

  // What this process knows:
  bool observer = false;      ///< the peer's last hello says that it is an observer
  bool draining = false;      ///< the peer leaves, or its edge: it gets no parcels any more
  bool leaves = false;        ///< the peer leaves, and need not confirm what it was sent
  bool agreed = false;        ///< it has sent what follows its consent to our hello
  bool claims_newer = false;  ///< it says that a newer process of ours runs
  std::optional<RefusalReason> refused;
  std::string trouble;
  std::string settings;  // the peer's own settings, where it refuses ours
  std::uint64_t offences = 0;
  std::uint64_t models = 0;  ///< models that it was sent
  std::uint64_t gifts = 0;   ///< times that all was given to it and taken back, as it began anew
  Influence influence;       ///< influence on the model in the last collect
  PeerHabits habits;
  Round whole_due = 0;    ///< round of this site from which a wish for a whole copy is granted
  Round whole_pause = 0;  ///< rounds until the next such wish is granted
  Freshness freshness;
  double part = 0;  ///< part of its pull that counts in this collect; 0: nothing came
  Lead lead;
  Punctuality punctuality;
  Punctuality answering;  ///< punctuality of its answers about sums

  PeerChannel channel;

  bool up() const { return channel.stage == ChannelStage::up; }
  bool connected() const { return channel.stage != ChannelStage::down; }
  /// Parcels go from it to us.
  bool heard() const { return up() && entry.hears && channel.tells_us; }
  /// Parcels go from us to it.
  bool told() const { return up() && entry.tells && channel.hears_us; }

  /// PeerHabits::comes_to_model
  bool comes_to_model() const { return habits.comes_to_model(channel.joining); }
  /// Whether the peer's parcels do not count in this round of the site, as it was blamed.
  bool barred(Round round) const { return round < barred_until; }
  /// Whether the peer's parcels count as the site's own model: it is barred, or has claimed more
  /// mass than a site may for a long while.
  bool ignored(Round round) const { return barred(round) || habits.mints_for_long(); }
  /// How the peer's parcels count in this round of the site. One that takes nothing, or little,
  /// would raise the mass of all others by what it sends, without end.
  Credit credit(Round round) const {
    return habits.confirms_nothing() ? Credit::nothing
           : ignored(round)          ? Credit::own_model
           : habits.gives_much()     ? Credit::pull
                                     : Credit::whole;
  }
  /// The number of sites that it lists, as it says, but not many times as many as a site of this
  /// degree: a liar could say so, and give as little.
  double degree(std::size_t own_degree) const;
  /// The round's parcels were taken in, by a site of this degree.
  void note_intake(std::size_t own_degree);

  /// Blames the peer for harm to the model, done or tried, that no honest site does, in this round
  /// of the site. Once may be an accident; from the second time on the peer is barred for a while,
  /// longer each time.
  void take_blame(Round round);
  /// The peer's habit that no rule forbids, if any.
  PeerHabit habit() const;

  /// The channel is open; the hello that `mine` begins goes out on it.
  Hello greet(Hello mine);
  /// The channel is gone.
  void hang_up();
  /// Takes a hello of the peer that fits, with verdict agreed or newcomer. Returns the mass
  /// that is written off.
  double meet(const Hello& hello, Verdict verdict, Incarnation self);
  /// In this round of the site the peer, which has all parcels up to `applied`, wishes a whole
  /// copy. A wish is granted after ever more rounds, as long as the two do not meet anew: no honest
  /// site loses its copy again and again.
  void wish_whole(Sequence applied, Round round);
  /// All parcels up to `applied` are durable there.
  void confirmed(Sequence applied);
  /// This site has a new incarnation: nothing has gone between the two.
  void begin_anew();
  /// It left the list; what is remembered of it stays. Returns the mass that is written off.
  double leave();

  /// Whether a receipt is to go out in a round that is offered. One that says no more than the
  /// round is left out ever more often while the peer says nothing: it need not know of each round
  /// of a site that is faster, and what waits for a peer that takes nothing stays bounded.
  bool needs_receipt() const;

  /// How the peer stands, for an operator.
  PeerState state() const;

  /// Appends the state kept of the peer, and both streams.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote. Fault::malformed for more parcels, or longer ones, than these.
  Status load(ByteReader& in, std::size_t window, std::size_t max_payload);
};

}  // namespace sotto::sites
