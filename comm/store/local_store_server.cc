#include "local_store_server.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/file_descriptor.h>
#include <sotto/comm/deadline.h>

#include "local_store_wire.h"

namespace sotto::internal {
namespace {

using Bytes = std::vector<std::byte>;

/// One connection. It has one request at a time: heard whole, it is answered before the next.
struct Client {
  explicit Client(int accepted) : socket(accepted) {}

  bool answering() const { return answered < sizeof reply + reply.value_bytes; }

  const FileDescriptor socket;
  StoreRequestHead request;
  std::string key;
  Bytes value;
  std::size_t heard = 0;  ///< bytes of the request received so far
  StoreReplyHead reply;
  /// The value to send; outlives the key, should it be removed meanwhile.
  std::shared_ptr<const Bytes> replied;
  std::size_t answered = sizeof(StoreReplyHead);  ///< bytes of the reply sent so far
  std::optional<Deadline> waits;  ///< deadline of a wait for a key that is not there yet
};

class LocalStoreServer {
 public:
  explicit LocalStoreServer(int line) : line_(line) {}
  void serve();

 private:
  bool take_connection();
  bool hear(Client& client);
  void answer(Client& client);
  void reply(Client& client, bool there, std::shared_ptr<const Bytes> value);
  static bool speak(Client& client);
  void wake(const std::string& key);
  void expire();
  int wait_ms() const;

  const int line_;
  std::list<Client> clients_;
  std::map<std::string, std::shared_ptr<const Bytes>, std::less<>> values_;
};

void LocalStoreServer::serve() {
  std::vector<pollfd> polled;
  for (;;) {
    polled.assign(1, {line_, POLLIN, 0});
    for (const Client& client : clients_) {
      const bool speaks = client.answering();
      polled.push_back({client.socket.get(), static_cast<short>(speaks ? POLLOUT : POLLIN), 0});
    }
    (void)::poll(polled.data(), polled.size(), wait_ms());
    auto next = polled.begin() + 1;
    for (auto client = clients_.begin(); client != clients_.end(); ++next) {
      const bool alive =
          next->revents == 0 || (client->answering() ? speak(*client) : hear(*client));
      client = alive ? std::next(client) : clients_.erase(client);
    }
    expire();
    if (polled.front().revents != 0 && !take_connection()) {
      return;
    }
  }
}

bool LocalStoreServer::take_connection() {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const auto got = ::recvmsg(line_, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0) {
    return errno == EINTR || errno == EAGAIN;
  }
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (got == 0 || header == nullptr || header->cmsg_type != SCM_RIGHTS) {
    return false;
  }
  int socket = -1;
  std::memcpy(&socket, CMSG_DATA(header), sizeof socket);
  clients_.emplace_back(socket);
  return true;
}

/// Takes what has come of a request; false when the connection is gone.
bool LocalStoreServer::hear(Client& client) {
  for (;;) {
    constexpr std::size_t kHead = sizeof client.request;
    const std::size_t key_end = kHead + (client.heard < kHead ? 0 : client.request.key_bytes);
    std::byte* to = reinterpret_cast<std::byte*>(&client.request) + client.heard;
    std::size_t room = kHead - client.heard;
    if (client.heard >= kHead && client.heard < key_end) {
      client.key.resize(client.request.key_bytes);
      to = reinterpret_cast<std::byte*>(client.key.data()) + (client.heard - kHead);
      room = key_end - client.heard;
    } else if (client.heard >= key_end && client.heard >= kHead) {
      client.value.resize(client.request.value_bytes);
      to = client.value.data() + (client.heard - key_end);
      room = key_end + client.request.value_bytes - client.heard;
    }
    if (client.heard >= kHead && room == 0) {
      answer(client);
      return true;
    }
    const auto got = ::recv(client.socket.get(), to, room, MSG_DONTWAIT);
    if (got <= 0) {
      return got < 0 && (errno == EAGAIN || errno == EINTR);
    }
    client.heard += static_cast<std::size_t>(got);
  }
}

void LocalStoreServer::answer(Client& client) {
  client.heard = 0;
  if (client.request.kind == StoreRequest::set) {
    values_.insert_or_assign(client.key, std::make_shared<const Bytes>(std::move(client.value)));
    client.value = {};
    reply(client, true, nullptr);
    wake(client.key);
    return;
  }
  const auto found = values_.find(client.key);
  if (client.request.kind == StoreRequest::remove) {
    if (found != values_.end()) {
      values_.erase(found);
    }
    reply(client, true, nullptr);
  } else if (found != values_.end()) {
    reply(client, true, found->second);
  } else if (client.request.wait_ms <= 0) {
    reply(client, false, nullptr);
  } else {
    client.waits = Deadline::after(std::chrono::milliseconds(client.request.wait_ms));
  }
}

void LocalStoreServer::reply(Client& client, bool there, std::shared_ptr<const Bytes> value) {
  client.waits.reset();
  client.reply = {.value_bytes = value ? value->size() : 0, .there = there ? 1U : 0U};
  client.replied = std::move(value);
  client.answered = 0;
  (void)speak(client);  // a client that is gone is found gone when it is heard
}

/// Gives the connection what it takes; false when it is gone.
bool LocalStoreServer::speak(Client& client) {
  while (client.answering()) {
    constexpr std::size_t kHead = sizeof client.reply;
    auto rest = std::as_bytes(std::span(&client.reply, 1));
    if (client.answered < kHead) {
      rest = rest.subspan(client.answered);
    } else {
      rest = std::span(*client.replied).subspan(client.answered - kHead);
    }
    const auto sent =
        ::send(client.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      return errno == EAGAIN || errno == EINTR;
    }
    client.answered += static_cast<std::size_t>(sent);
  }
  client.replied.reset();
  return true;
}

void LocalStoreServer::wake(const std::string& key) {
  const auto& value = values_.at(key);
  for (Client& client : clients_) {
    if (client.waits && client.key == key) {
      reply(client, true, value);
    }
  }
}

void LocalStoreServer::expire() {
  for (Client& client : clients_) {
    if (client.waits && client.waits->expired()) {
      reply(client, false, nullptr);
    }
  }
}

int LocalStoreServer::wait_ms() const {
  int shortest = -1;
  for (const Client& client : clients_) {
    if (client.waits) {
      const int left = client.waits->left_ms();
      shortest = shortest < 0 ? left : std::min(shortest, left);
    }
  }
  return shortest;
}

}  // namespace

void serve_local_store(int line) { LocalStoreServer(line).serve(); }

}  // namespace sotto::internal
