// What a site and its peers say to each other: each message that comes is checked against what went
// before it, noted or answered, and one that breaks a rule costs its sender the channel.
//
// Here is also who believes whom: a peer that knows more of this site than its state does makes it
// give that state up, or end (site.h says what a liar can do with that).
//
// A building block of Site, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <sotto/base/shared_bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/leaving.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/mixing/site_mixing.h>
#include <sotto/sites/core/neighbours.h>
#include <sotto/sites/core/offered_models.h>
#include <sotto/sites/core/outbox.h>
#include <sotto/sites/core/site_self.h>
#include <sotto/sites/core/site_setup.h>
#include <sotto/sites/core/sums/sum_round.h>

namespace sotto::sites {

/// The parts of a site of which its peers ask, and which hear of what they say.
struct TalkParts {
  const SiteSetup& setup;
  SiteSelf& self;
  Neighbours& peers;
  Outbox& outbox;
  SiteMixing& mixing;
  OfferedModels& models;
  Leaving& leaving;
  const SumRound& sum_round;
};

class PeerTalk {
 public:
  /// All parts outlive the object.
  explicit PeerTalk(const TalkParts& parts)
      : setup_(parts.setup),
        self_(parts.self),
        peers_(parts.peers),
        outbox_(parts.outbox),
        mixing_(parts.mixing),
        models_(parts.models),
        leaving_(parts.leaving),
        sum_round_(parts.sum_round) {}

  /// As Site::peer_up.
  void open(std::size_t peer);
  /// Drops what waits for the peer, and closes its channel.
  void close(std::size_t peer);
  /// As Site::receive.
  Status receive(std::size_t peer, const SharedBytes& message);

  /// Gives the round's parcels their numbers, and sends them.
  void post(std::span<const Addressee> to);
  /// Sends a receipt, which also says how many rounds this site has offered.
  void confirm(std::size_t peer);
  /// Asks the members of a sum that are up for what it needs besides.
  void ask(Unmask question, std::span<const std::size_t> members);
  /// Sends answers about sums to peers that are up.
  void tell(std::vector<std::pair<std::size_t, Masks>> answers);
  /// Refuses a peer for what it sent. Returns the fault, which names it.
  Status offence(std::size_t peer, Fault fault, std::string_view what);

 private:
  Status take(std::size_t peer, const Hello& hello);
  Status take(std::size_t peer, const Refusal& refusal);
  Status take(std::size_t peer, const Model& model);
  /// The parcel's payload is a part of `message`.
  Status take(std::size_t peer, const Parcel& parcel, const SharedBytes& message);
  Status take(std::size_t peer, const Receipt& receipt);
  Status take(std::size_t peer, const SumKey& key);
  Status take(std::size_t peer, const Unmask& question);
  Status take(std::size_t peer, const Masks& answer);

  /// Takes a hello that fits, with verdict agreed or newcomer.
  Status meet(std::size_t peer, const Hello& hello, Verdict verdict);
  /// Answers such a hello: sends parcels again, the key for sums, and the model if it is wanted.
  void answer(std::size_t peer, bool wants_model);
  /// Checks a message after the hello, which proves that the peer took ours. A fault when it is not
  /// of the incarnation that we know, or before its hello.
  Status expect(std::size_t peer, Incarnation from, Incarnation due);

  void refuse(std::size_t peer, RefusalReason reason, std::string_view text);
  /// The peer says, or shows, that there was a newer state of this site, or a newer process.
  void accused(std::size_t peer, std::string_view how);
  /// Another process of ours is claimed to run.
  void fence();

  const SiteSetup& setup_;
  SiteSelf& self_;
  Neighbours& peers_;
  Outbox& outbox_;
  SiteMixing& mixing_;
  OfferedModels& models_;
  Leaving& leaving_;
  const SumRound& sum_round_;
};

}  // namespace sotto::sites
