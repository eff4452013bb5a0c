// What a site and its peers say to each other: each message that comes is checked against what went
// before it, noted or answered, and one that breaks a rule costs its sender the channel.
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
#include <sotto/sites/core/handshake.h>
#include <sotto/sites/core/leaving.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/mixing/mixing.h>
#include <sotto/sites/core/neighbours.h>
#include <sotto/sites/core/offered_models.h>
#include <sotto/sites/core/outbox.h>
#include <sotto/sites/core/site_self.h>

namespace sotto::sites {

class PeerTalk {
 public:
  /// The parts of a site of which its peers ask, and which hear of what they say: all outlive the
  /// object.
  PeerTalk(SiteSelf& self, Neighbours& peers, Mixing& mixing, OfferedModels& models,
           Leaving& leaving)
      : self_(self), peers_(peers), mixing_(mixing), models_(models), leaving_(leaving) {}

  /// As Site::peer_up.
  void open(std::size_t peer);
  /// As Site::peer_down.
  void down(std::size_t peer);
  /// As Handshake::close.
  void close(std::size_t peer) { handshake_.close(peer); }
  /// As Outbox::rearrange.
  void rearrange(std::span<const std::size_t> place) { outbox_.rearrange(place); }
  /// As Site::released.
  std::vector<Released> released() { return outbox_.take(); }
  /// As Site::receive.
  Status receive(std::size_t peer, const SharedBytes& message);

  /// Gives the round's parcels their numbers, and sends them.
  void post(std::span<const Addressee> to);
  /// Sends a parcel that has no receipt yet.
  void send_parcel(std::size_t peer, Sequence sequence);
  /// Sends a receipt, which also says how many rounds this site has offered.
  void confirm(std::size_t peer);
  /// Asks the members of a sum that are up for what it needs besides.
  void ask(Unmask question, std::span<const std::size_t> members);
  /// Sends answers about sums to peers that are up.
  void tell(std::vector<std::pair<std::size_t, Masks>> answers);
  /// As Handshake::offence.
  Status offence(std::size_t peer, Fault fault, std::string_view what) {
    return handshake_.offence(peer, fault, what);
  }

 private:
  Status take(std::size_t peer, const Hello& hello);
  // What comes after the hello, of the incarnation that is due.
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

  SiteSelf& self_;
  Neighbours& peers_;
  Mixing& mixing_;
  OfferedModels& models_;
  Leaving& leaving_;
  Outbox outbox_;
  Handshake handshake_{self_, peers_, outbox_};
};

}  // namespace sotto::sites
