// Which peers a site talks to: their hellos, refusals either way, and who believes whom.
//
// A peer that knows more of this site than its state does makes it give that state up, or end
// (site.h says what a liar can do with that). One that breaks a rule is refused until its channel
// closes.
//
// A building block of PeerTalk, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include <sotto/base/status.h>
#include <sotto/sites/core/hello_verdict.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/neighbours.h>
#include <sotto/sites/core/outbox.h>
#include <sotto/sites/core/site_self.h>

namespace sotto::sites {

class Handshake {
 public:
  /// All outlive the object.
  Handshake(SiteSelf& self, Neighbours& peers, Outbox& outbox)
      : self_(self), peers_(peers), outbox_(outbox) {}

  /// The channel to a peer is open: says hello. `wants_model`: this site could begin from the
  /// peer's model.
  void open(std::size_t peer, bool wants_model);
  /// Drops what waits for the peer, and closes its channel.
  void close(std::size_t peer);

  /// A hello. The verdict, where the two can meet: agreed or newcomer; no value: they do not.
  Result<std::optional<Verdict>> take(std::size_t peer, const Hello& hello);
  /// The peer does not talk to this site.
  void take(std::size_t peer, const Refusal& refusal);
  /// Checks a message after the hello, which proves that the peer took ours. A fault when it is not
  /// of the incarnation that we know, or before its hello.
  Status expect(std::size_t peer, Incarnation from, Incarnation due);
  /// Refuses a peer for what it sent. Returns the fault, which names it.
  Status offence(std::size_t peer, Fault fault, std::string_view what);

 private:
  void refuse(std::size_t peer, RefusalReason reason, std::string_view text);
  /// The peer says, or shows, that there was a newer state of this site, or a newer process.
  void accused(std::size_t peer, std::string_view how);
  /// Another process of ours is claimed to run.
  void fence();

  SiteSelf& self_;
  Neighbours& peers_;
  Outbox& outbox_;
};

}  // namespace sotto::sites
