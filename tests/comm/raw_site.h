// Rank 1 of two sites, made by hand: a listener that takes everything, and a client that says what
// a test wants, with the key of the list.
#pragma once

#include <optional>
#include <vector>

#include "../../comm/zmq/channels/channel_wire.h"
#include "outsider.h"
#include "sites.h"

namespace sotto::test {

class RawSite {
 public:
  explicit RawSite(const Sites& sites)
      : endpoint_(fmt::format("tcp://{}", sites.lines()[0].address)),
        authenticator_(context_, [](std::string_view, std::string_view) { return true; }),
        listener_(context_, fmt::format("tcp://{}", sites.lines()[1].address), {1U << 20, 1000},
                  &keys_) {}

  /// Waits for the site, connects, and says what is due until the site thinks that they have met.
  void meet() {
    const auto session = heard<internal::channel_wire::Greeting>().session;
    connect();
    send(internal::channel_wire::Greeting{7});
    send(internal::channel_wire::Accept{session});
  }
  void connect() { client_.emplace(endpoint_, keys_, keys_of(0).public_key); }
  /// Accepts the site's latest greeting.
  void accept() {
    send(internal::channel_wire::Accept{heard<internal::channel_wire::Greeting>().session});
  }
  void send(const internal::channel_wire::Message& message) {
    send_bytes(internal::channel_wire::write(message));
  }
  void send_bytes(std::span<const std::byte> bytes) { client_->send(bytes); }

  /// The next message of this kind that the site sends; others, and
  /// those of a connection that has ended, are dropped.
  template <typename Kind>
  Kind heard() {
    for (const auto deadline = generous();;) {
      REQUIRE_FALSE(deadline.expired());
      const auto incoming = listener_.receive();
      (void)listener_.ended();
      if (!incoming || !listener_.alive(incoming->connection)) {
        zmq::pollitem_t item = {listener_.socket().handle(), 0, ZMQ_POLLIN, 0};
        zmq::poll(&item, 1, std::chrono::milliseconds(100));
        continue;
      }
      const auto message = internal::channel_wire::parse(
          {static_cast<const std::byte*>(incoming->body.data()), incoming->body.size()});
      REQUIRE_MESSAGE(message.ok(), message.status().message());
      if (const auto* kind = std::get_if<Kind>(&*message)) {
        return *kind;
      }
    }
  }
  /// Waits until there is room for messages that cost so much in all.
  void await_room(std::uint64_t cost) {
    while (heard<internal::channel_wire::Receipt>().allowed < cost) {
    }
  }

 private:
  const std::string endpoint_;
  const KeyPair keys_ = keys_of(1);
  zmq::context_t context_;
  internal::Authenticator authenticator_;
  internal::Listener listener_;
  std::optional<Outsider> client_;
};

}  // namespace sotto::test
