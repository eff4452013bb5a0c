#include <sotto/comm/local_store.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/file_descriptor.h>

#include "internal/store_key.h"
#include "store/local_store_server.h"
#include "store/local_store_wire.h"

namespace sotto {
namespace {

using internal::StoreReplyHead;
using internal::StoreRequest;
using internal::StoreRequestHead;

/// How long the server may take to say or to hear the next byte, on a machine however busy.
constexpr std::chrono::seconds kPatience{30};
constexpr int kLongestWaitMs = 2'000'000'000;

/// One conversation at a time goes over it.
class Connection {
 public:
  explicit Connection(int socket) : socket_(socket) {}

  /// False when the server is gone or hangs.
  bool say(std::span<const std::byte> bytes) const;
  bool hear(std::span<std::byte> bytes, Deadline deadline) const;

 private:
  bool ready(short what, Deadline deadline) const;

  FileDescriptor socket_;
};

bool Connection::ready(short what, Deadline deadline) const {
  pollfd polled{socket_.get(), what, 0};
  int got = 0;
  while ((got = ::poll(&polled, 1, deadline.look_ms())) <= 0) {
    if ((got < 0 && errno != EINTR) || deadline.expired()) {
      return false;
    }
  }
  return true;
}

bool Connection::say(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const auto sent =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if ((errno != EAGAIN && errno != EINTR) || !ready(POLLOUT, Deadline::after(kPatience))) {
      return false;
    }
  }
  return true;
}

bool Connection::hear(std::span<std::byte> bytes, Deadline deadline) const {
  while (!bytes.empty()) {
    const auto got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
      deadline = Deadline::after(kPatience);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR) || !ready(POLLIN, deadline)) {
      return false;
    }
  }
  return true;
}

/// A connection of two ends, one of which goes to the server over the line.
std::optional<Connection> connect_over(int line) {
  int ends[2] = {-1, -1};
  if (line < 0 || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::nullopt;
  }
  Connection mine(ends[0]);
  const Connection given(ends[1]);
  char byte = 1;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &ends[1], sizeof ends[1]);
  ssize_t sent = 0;
  while ((sent = ::sendmsg(line, &message, MSG_NOSIGNAL)) < 0 && errno == EINTR) {
  }
  return sent == 1 ? std::optional(std::move(mine)) : std::nullopt;
}

class LocalStoreClient final : public Store {
 public:
  explicit LocalStoreClient(int line) : line_(line) {}

  Status set(std::string_view key, std::span<const std::byte> value) override {
    if (auto fits = internal::check_store_entry(key, value); !fits) {
      return fits;
    }
    return ask(StoreRequest::set, key, value, Deadline::after({})).status();
  }
  Result<std::vector<std::byte>> get(std::string_view key, Deadline deadline) override {
    if (auto fits = internal::check_store_key(key); !fits) {
      return fits;
    }
    return ask(StoreRequest::get, key, {}, deadline);
  }
  Status remove(std::string_view key) override {
    if (auto fits = internal::check_store_key(key); !fits) {
      return fits;
    }
    return ask(StoreRequest::remove, key, {}, Deadline::after({})).status();
  }

 private:
  using Bytes = std::vector<std::byte>;

  Result<Bytes> ask(StoreRequest kind, std::string_view key, std::span<const std::byte> value,
                    Deadline deadline);
  std::optional<Connection> borrow();

  const int line_;
  std::mutex mutex_;
  std::vector<Connection> idle_;
};

std::optional<Connection> LocalStoreClient::borrow() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) {
    return connect_over(line_);
  }
  std::optional<Connection> connection(std::move(idle_.back()));
  idle_.pop_back();
  return connection;
}

Result<std::vector<std::byte>> LocalStoreClient::ask(StoreRequest kind, std::string_view key,
                                                     std::span<const std::byte> value,
                                                     Deadline deadline) {
  const Status gone(
      Fault::io, fmt::format("asking about '{}': the store of this job is gone", std::string(key)));
  const StoreRequestHead head{.kind = kind,
                              .key_bytes = static_cast<std::uint32_t>(key.size()),
                              .value_bytes = value.size(),
                              .wait_ms = deadline.left_ms(kLongestWaitMs)};
  auto connection = borrow();
  if (!connection || !connection->say(std::as_bytes(std::span(&head, 1))) ||
      !connection->say(std::as_bytes(std::span(key))) || !connection->say(value)) {
    return gone;
  }
  StoreReplyHead reply;
  const Deadline patience(
      Deadline::Clock::now() + std::chrono::milliseconds(head.wait_ms) + kPatience,
      deadline.stop());
  if (!connection->hear(std::as_writable_bytes(std::span(&reply, 1)), patience)) {
    return deadline.stopped() ? internal::store_overdue(key, deadline) : gone;
  }
  Bytes answer(reply.value_bytes);
  if (!connection->hear(answer, Deadline::after(kPatience))) {
    return gone;
  }
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(*connection));
  }
  return reply.there != 0 ? Result<Bytes>(std::move(answer))
                          : internal::store_overdue(key, deadline);
}

}  // namespace

LocalStore::LocalStore() : helper_(internal::serve_local_store) {}

std::shared_ptr<Store> LocalStore::open() const {
  return std::make_shared<LocalStoreClient>(helper_.line());
}

}  // namespace sotto
