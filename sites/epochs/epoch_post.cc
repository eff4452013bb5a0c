#include <sotto/sites/epochs/epoch_post.h>

#include <algorithm>

namespace sotto::sites {

void EpochPost::set_peers(const std::vector<EpochPeer>& peers) {
  peers_ = {peers.begin(), peers.end()};
  std::erase_if(stays_, [&](const auto& item) {
    const auto& [name, incarnation] = item.first;
    return !peers_.contains({name, incarnation, false}) &&
           !peers_.contains({name, incarnation, true});
  });
}

bool EpochPost::suspects(const EpochNode& node) const {
  if (node == place_.self) {
    return false;
  }
  const bool anew = latest(node).stay > node.stay;
  return anew || !peers_.contains({node.name, node.incarnation, false});
}

bool EpochPost::hear(const EpochNode& from) {
  auto& stay = stays_[{from.name, from.incarnation}];
  if (from.stay < stay) {
    return false;
  }
  stay = from.stay;
  return true;
}

EpochNode EpochPost::latest(const EpochNode& node) const {
  const auto stay = stays_.find({node.name, node.incarnation});
  return {node.name, node.incarnation, stay == stays_.end() ? node.stay : stay->second};
}

std::optional<EpochPost::Process> EpochPost::address(const EpochNode& to) const {
  if (to.incarnation != 0) {
    return Process(to.name, to.incarnation);
  }
  const auto found = std::ranges::find_if(
      peers_, [&](const EpochPeer& peer) { return peer.name == to.name && !peer.suspected; });
  return found == peers_.end() ? std::nullopt
                               : std::optional(Process(found->name, found->incarnation));
}

void EpochPost::send(const EpochNode& to, Epoch epoch, EpochBody body) {
  const auto where = address(to);
  if (where && where->first != place_.self.name) {
    SharedBytes tail = tail_of(body);
    outbox_.push_back(
        {where->first, where->second,
         encode_head(EpochMessage{{place_.history, epoch, place_.self.stay}, std::move(body)}),
         std::move(tail)});
  }
}

void EpochPost::send_to_voters(const EpochBody& body) {
  for (const EpochNode& voter : place_.voters()) {
    send(voter, body);
  }
}

void EpochPost::send_to_peers(const EpochBody& body) {
  for (const EpochPeer& peer : peers_) {
    send({peer.name, peer.incarnation, 0}, body);
  }
}

void EpochPost::send_mean(const EpochNode& to, const WholeMean& whole, std::uint16_t part) {
  const std::vector<MeanPart>& parts = whole.mean.parts;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (part == kAllParts || part == k) {
      send(to, PartMessage{.standing = PartMessage::Standing::held,
                           .step = whole.mean.step,
                           .digest = whole.digest,
                           .parts = static_cast<std::uint16_t>(parts.size()),
                           .part = static_cast<std::uint16_t>(k),
                           .who = parts[k].who,
                           .encoding = parts[k].encoding});
    }
  }
}

}  // namespace sotto::sites
