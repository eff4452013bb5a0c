// The Site (site.h): who may say what when, the round, and the durable state. What a hello means is
// meeting.h's, what a parcel holds a Mixing's.
//
// One thread at a time. Owns all but the parameters.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sotto/optim/federated/mixing.h>
#include <sotto/optim/federated/neighbour.h>
#include <sotto/optim/federated/site.h>

namespace sotto::federated {

/// Throws Error for names that cannot be, or one-sided trust with gossip.
void admit_peers(const std::vector<SitePeer>& peers, Exchange exchange);

class FederatedSite final : public Site {
 public:
  /// `setup` is one that make_site has approved; its step rule and compressor are the mixing's.
  FederatedSite(SiteSetup setup, std::unique_ptr<Mixing> mixing);

  void peer_up(std::size_t peer) override;
  void peer_down(std::size_t peer) override;
  Status receive(std::size_t peer, std::span<const std::byte> message) override;
  void update_peers(const std::vector<SitePeer>& peers) override;
  Status alive() const override { return alive_; }

  bool ready(bool waited) override;
  std::span<const float> parameters() const override { return setup_.parameters; }
  Round round() const override { return round_; }
  Status step(std::span<const float> gradient) override;
  std::optional<std::vector<Suspect>> put_back() override;
  std::vector<Suspect> influences() const override;
  Status offer() override;
  std::vector<Released> released() override;
  bool complete() const override { return awaited().empty(); }
  std::vector<std::size_t> awaited() const override;
  Status collect() override;

  SiteState state() const override;
  std::vector<PeerState> peers() const override;
  std::size_t max_message_bytes() const override;
  std::span<const float> public_copy(std::optional<std::size_t> peer) const override {
    return mixing_->public_copy(peer);
  }

  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;

 private:
  /// Of former peers the latest are remembered.
  static constexpr std::size_t kMaxFormer = 256;

  enum class Phase : std::uint8_t { waiting, training, offered };

  Neighbour& neighbour(std::size_t peer) {
    check(peer < peers_.size(), "a peer is one of the list");
    return peers_[peer];
  }

  // What a peer said.
  Status take(std::size_t peer, const Hello& hello);
  Status take(std::size_t peer, const Refusal& refusal);
  Status take(std::size_t peer, const Model& model);
  Status take(std::size_t peer, const Parcel& parcel);
  Status take(std::size_t peer, const Receipt& receipt);
  /// Streams and model after a hello that fits.
  void answer(std::size_t peer, bool wants_model);
  /// What follows a hello proves that the peer took ours. A fault when it is not of the incarnation
  /// that we know, or before its hello.
  Status expect(std::size_t peer, Incarnation from, Incarnation due);

  Status offence(std::size_t peer, Fault fault, std::string_view what);
  void refuse(std::size_t peer, RefusalReason reason, std::string_view text);
  /// The peer says, or shows, that there was a newer state of this site, or a newer process.
  void accused(std::size_t peer, std::string_view how);
  /// Another process of ours is claimed to run.
  void fence();

  void send(std::size_t peer, std::vector<std::byte> message);
  void close(std::size_t peer);
  void drop_outbox(std::size_t peer);

  /// peers.size() when it is not there.
  static std::size_t place_of(const std::vector<Neighbour>& peers, std::string_view name);
  /// Takes in one that left the list.
  void retire(Neighbour gone);

  void begin();
  void give_up();
  std::size_t tells() const;
  std::size_t degree() const;  // sites in the list
  /// Nobody else will say which round it is, or two do.
  bool has_second_opinion() const;
  /// The latest round in which a site begins on the word of one neighbour.
  Round believed_alone() const;
  /// That in which a site begins that took a model over.
  Round believed_round() const;
  /// Gives the round's parcels their numbers, and sends them.
  void post(std::span<const Addressee> to);
  /// complete() waits for this peer, which is heard.
  bool late(const Neighbour& peer) const;
  /// The first parcel that is pending is for this round.
  bool due(const Neighbour& from) const;
  void take_in(std::size_t peer);
  bool barred(const Neighbour& peer) const { return round_ < peer.barred_until; }
  /// Before and after a round's parcels are taken in: whom the model was moved by, who came late,
  /// and what they make a habit of.
  void begin_intake();
  void end_intake(std::span<const MixedPeer> mixed);
  Status here(const Status& status) const;

  Status load_self(ByteReader& in);
  Status load_peers(ByteReader& in);
  Status load_peer(ByteReader& in, std::vector<Neighbour>& into);

  SiteSetup setup_;  // without step rule and compressor
  std::unique_ptr<Mixing> mixing_;
  std::vector<Neighbour> peers_;
  std::vector<Neighbour> former_;  // no longer listed, for what their streams had come to
  std::vector<Released> outbox_;
  Status alive_;

  // Durable.
  Incarnation incarnation_;
  Past past_;
  Round round_ = 0;
  Round offered_ = 0;                 // rounds, as announced
  Round given_round_ = 0;             // of the model that was taken over
  std::optional<std::size_t> giver_;  // of the model, until the site begins
  bool trained_ = false;
  double minted_ = 0;
  double written_off_ = 0;
  std::uint64_t resets_ = 0;

  Phase phase_ = Phase::waiting;
  Round steps_ = 0;          // in this round
  bool influenced_ = false;  // something was taken in since put_back, or ever
  Round low_rounds_ = 0;     // in a row, in which ω was near its floor
  bool loaded_ = false;      // and not given up
  bool condemned_ = false;   // what was loaded is too old
};

}  // namespace sotto::federated
