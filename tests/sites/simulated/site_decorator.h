// A site that hands everything on to another: tests override what they break.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <sotto/optim/federated/site.h>

namespace sotto::test {

class SiteDecorator : public federated::Site {
 public:
  explicit SiteDecorator(std::unique_ptr<Site> inner) : inner_(std::move(inner)) {}

  void peer_up(std::size_t peer) override { inner_->peer_up(peer); }
  void peer_down(std::size_t peer) override { inner_->peer_down(peer); }
  Status receive(std::size_t peer, std::span<const std::byte> message) override {
    return inner_->receive(peer, message);
  }
  void update_peers(const std::vector<federated::SitePeer>& peers) override {
    inner_->update_peers(peers);
  }
  Status alive() const override { return inner_->alive(); }
  bool ready(bool waited) override { return inner_->ready(waited); }
  std::span<const float> parameters() const override { return inner_->parameters(); }
  Round round() const override { return inner_->round(); }
  Status step(std::span<const float> gradient) override { return inner_->step(gradient); }
  std::optional<std::vector<federated::Suspect>> put_back() override { return inner_->put_back(); }
  std::vector<federated::Suspect> influences() const override { return inner_->influences(); }
  Status offer() override { return inner_->offer(); }
  std::vector<federated::Released> released() override { return inner_->released(); }
  bool complete() const override { return inner_->complete(); }
  std::vector<std::size_t> awaited() const override { return inner_->awaited(); }
  Status collect() override { return inner_->collect(); }
  std::size_t max_message_bytes() const override { return inner_->max_message_bytes(); }
  federated::SiteState state() const override { return inner_->state(); }
  std::vector<federated::PeerState> peers() const override { return inner_->peers(); }
  std::span<const float> public_copy(std::optional<std::size_t> peer) const override {
    return inner_->public_copy(peer);
  }
  void save(ByteBuffer& out) const override { inner_->save(out); }
  Status load(ByteReader& in) override { return inner_->load(in); }

 protected:
  Site& inner() { return *inner_; }
  const Site& inner() const { return *inner_; }

 private:
  std::unique_ptr<Site> inner_;
};

}  // namespace sotto::test
