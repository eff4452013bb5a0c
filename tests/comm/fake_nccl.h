// NCCL that is none, for ranks that are threads, or processes forked after the world was made.
//
// What it keeps of NCCL: a join lasts until all have called it; a group does nothing before its
// end, and is under way for some looks after it; messages of a pair are matched in order, and must
// be of one length; a sender is done once its bytes are in a short pipe (so short messages leave
// before they are taken) and waits otherwise; groups of a communicator run one after the other, on
// the stream; a rank that is gone stalls what waits for it, and only shows as an error where the
// world is told so; a communicator is destroyed when it is flushed, or aborted at any time. Wrong
// use ends the test.
//
// Thread safety: World any; FakeNccl as internal::NcclApi.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <sotto/comm/nccl/api.h>

#include "fake_device.h"

namespace sotto::test {

/// The bytes of one direction of one pair, between one writer and one reader.
struct FakePipe {
  static constexpr std::size_t kRoom = 16384;

  std::size_t write(const std::byte* from, std::size_t count) {
    const std::size_t at = written.load(std::memory_order_relaxed);
    count = std::min(count, kRoom - (at - taken.load(std::memory_order_acquire)));
    for (std::size_t i = 0; i < count;) {
      const std::size_t place = (at + i) % kRoom;
      const std::size_t piece = std::min(count - i, kRoom - place);
      std::memcpy(bytes.data() + place, from + i, piece);
      i += piece;
    }
    written.store(at + count, std::memory_order_release);
    return count;
  }
  std::size_t read(std::byte* to, std::size_t count) {
    const std::size_t at = taken.load(std::memory_order_relaxed);
    count = std::min(count, written.load(std::memory_order_acquire) - at);
    for (std::size_t i = 0; i < count;) {
      const std::size_t place = (at + i) % kRoom;
      const std::size_t piece = std::min(count - i, kRoom - place);
      std::memcpy(to + i, bytes.data() + place, piece);
      i += piece;
    }
    taken.store(at + count, std::memory_order_release);
    return count;
  }

  std::atomic<std::size_t> written;
  std::atomic<std::size_t> taken;
  std::array<std::byte, kRoom> bytes;
};

/// What all ranks share.
class World {
 public:
  static constexpr int kMostRanks = 32;
  static constexpr std::size_t kRooms = 128;
  struct Room {
    std::atomic<bool> used;
    std::atomic<int> ranks;
    std::atomic<int> joined;
    std::atomic<int> gone;
    std::array<std::atomic<bool>, kMostRanks> left;
    std::array<FakePipe, std::size_t{kMostRanks} * kMostRanks> pipes;
    FakePipe& pipe(Rank from, Rank to) {
      return pipes[static_cast<std::size_t>(from) * kMostRanks + static_cast<std::size_t>(to)];
    }
  };
  struct Shared {
    std::atomic<bool> locked;
    std::atomic<bool> tells_errors;
    std::array<Room, kRooms> room;
  };

  World() {
    // Only what is used becomes memory; zeros are the initial state of all of it.
    void* at = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    sotto::check(at != MAP_FAILED, "the world has memory");
    shared_ = static_cast<Shared*>(at);
  }
  ~World() { ::munmap(shared_, sizeof(Shared)); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// From now on, whoever waits for a rank that is gone gets an error, as over a network.
  void tell_errors() { shared_->tells_errors = true; }
  /// One that nobody was in, or that all have left.
  std::uint32_t new_room() {
    while (shared_->locked.exchange(true)) {
      std::this_thread::yield();
    }
    const auto found = std::find_if(shared_->room.begin(), shared_->room.end(), [](Room& room) {
      return !room.used || (room.ranks > 0 && room.gone == room.ranks);
    });
    sotto::check(found != shared_->room.end(), "the world has a room");
    clear(*found);
    shared_->locked = false;
    return static_cast<std::uint32_t>(found - shared_->room.begin());
  }
  Room& room(std::uint32_t number) { return shared_->room[number]; }
  bool tells_errors() const { return shared_->tells_errors; }

 private:
  static void clear(Room& room) {
    for (Rank from = 0; from < room.ranks; ++from) {
      room.left[static_cast<std::size_t>(from)] = false;
      for (Rank to = 0; to < room.ranks; ++to) {
        room.pipe(from, to).written = 0;
        room.pipe(from, to).taken = 0;
      }
    }
    room.used = true;
    room.ranks = 0;
    room.joined = 0;
    room.gone = 0;
  }

  Shared* shared_ = nullptr;
};

/// One rank's library.
class FakeNccl final : public internal::NcclApi {
 public:
  FakeNccl(std::shared_ptr<World> world, std::shared_ptr<FakeDevice> device)
      : world_(std::move(world)), device_(std::move(device)) {}
  ~FakeNccl() override { sotto::check(ranks_ == 0, "communicators are ended"); }
  FakeNccl(const FakeNccl&) = delete;
  FakeNccl& operator=(const FakeNccl&) = delete;

  /// The communicators of this rank are broken from now on.
  void fail() { failing_ = true; }
  /// Groups of this rank stay under way from now on, and nothing of them moves.
  void stall() { stalled_ = true; }
  /// How many groups were begun.
  int groups() const { return groups_; }
  /// How many communicators ended in good order.
  int destroyed() const { return destroyed_; }
  /// Bytes of all messages that were sent.
  std::size_t bytes_sent() const { return bytes_sent_; }

  Result<internal::CommunicatorId> make_id() override {
    internal::CommunicatorId id{};
    const std::uint32_t number = world_->new_room();
    std::memcpy(id.data(), &number, sizeof number);
    return id;
  }
  Result<internal::Communicator> join(int ranks, const internal::CommunicatorId& id,
                                      Rank rank) override {
    std::uint32_t number = 0;
    std::memcpy(&number, id.data(), sizeof number);
    auto* made = new Member{.room = &world_->room(number), .ranks = ranks, .rank = rank};
    made->room->ranks = ranks;
    ++made->room->joined;
    ++ranks_;
    return reinterpret_cast<internal::Communicator>(made);
  }
  Result<bool> settled(internal::Communicator communicator) override {
    Member& member = of(communicator);
    if (failing_ || member.broken) {
      return Status(Fault::io, "NCCL, the communicator: remote process exited");
    }
    if (member.room->joined < member.ranks || stalled_) {
      return false;
    }
    member.under_way = std::max(0, member.under_way - 1);
    if (member.under_way == 0 && member.launch) {
      std::exchange(member.launch, nullptr)();
    }
    return member.under_way == 0;
  }

  Status begin_group() override {
    sotto::check(!grouped_, "groups do not nest here");
    grouped_ = true;
    return {};
  }
  Status send(std::span<const std::byte> memory, Rank to, internal::Communicator communicator,
              internal::DeviceStream stream) override {
    bytes_sent_ += memory.size();
    // Only read from.
    add({device_->reach(memory.data()), memory.size(), to, true}, communicator, stream);
    return {};
  }
  Status receive(std::span<std::byte> memory, Rank from, internal::Communicator communicator,
                 internal::DeviceStream stream) override {
    add({device_->reach(memory.data()), memory.size(), from, false}, communicator, stream);
    return {};
  }
  Status end_group() override {
    sotto::check(grouped_, "a group ends that began");
    grouped_ = false;
    if (group_ == nullptr) {
      return {};
    }
    ++groups_;
    Member& member = *std::exchange(group_, nullptr);
    // What comes onto the stream before it has settled runs in front of it.
    member.launch = [this, &member, moves = std::exchange(moves_, {}), stream = stream_] {
      ++member.on_stream;
      FakeDevice::of(stream)->put([this, &member, moves]() mutable {
        carry(member, std::move(moves));
        --member.on_stream;
      });
    };
    member.under_way = kLooks;
    return {};
  }

  Status finalize(internal::Communicator communicator) override {
    Member& member = of(communicator);
    sotto::check(member.under_way == 0 && !member.launch, "nothing before the last has settled");
    member.finalized = true;
    member.under_way = kLooks;
    return {};
  }
  void destroy(internal::Communicator communicator) override {
    const Member& member = of(communicator);
    sotto::check(member.finalized && member.under_way == 0 && member.on_stream == 0,
                 "a communicator is destroyed when it is flushed");
    ++destroyed_;
    end(communicator);
  }
  void abort(internal::Communicator communicator) override { end(communicator); }

 private:
  static constexpr int kLooks = 3;
  struct Member {
    World::Room* room = nullptr;
    int ranks = 0;
    Rank rank = 0;
    int under_way = 0;  ///< looks at it until it has settled
    std::function<void()> launch{};
    bool finalized = false;
    std::atomic<int> on_stream{0};
    std::atomic<bool> aborted{false};
    std::atomic<bool> broken{false};
  };
  /// A message on its way, with its length in front of it.
  struct Move {
    std::byte* at;
    std::size_t bytes;
    Rank peer;
    bool out;
    std::array<std::byte, sizeof(std::uint64_t)> length{};
    std::size_t length_moved = 0;
    std::size_t moved = 0;
  };

  static Member& of(internal::Communicator communicator) {
    return *reinterpret_cast<Member*>(communicator);
  }
  void end(internal::Communicator communicator) {
    Member& member = of(communicator);
    member.aborted = true;
    member.room->left[static_cast<std::size_t>(member.rank)] = true;
    while (member.on_stream > 0) {
      std::this_thread::yield();
    }
    ++member.room->gone;
    delete &member;
    --ranks_;
  }
  void add(Move move, internal::Communicator communicator, internal::DeviceStream stream) {
    Member& member = of(communicator);
    sotto::check(grouped_, "messages are sent and received in groups");
    sotto::check(!member.finalized, "nothing is sent or received after a flush");
    sotto::check(member.under_way == 0 && !member.launch, "nothing before the last has settled");
    sotto::check(move.peer >= 0 && move.peer < member.ranks, "the peer is a rank");
    const std::uint64_t bytes = move.bytes;
    std::memcpy(move.length.data(), &bytes, sizeof bytes);
    group_ = &member;
    stream_ = stream;
    moves_.push_back(move);
  }

  /// True when something moved.
  static bool advance(Move& move, Member& member) {
    FakePipe& pipe = move.out ? member.room->pipe(member.rank, move.peer)
                              : member.room->pipe(move.peer, member.rank);
    const auto part = [&](std::byte* at, std::size_t bytes) {
      return move.out ? pipe.write(at, bytes) : pipe.read(at, bytes);
    };
    if (move.length_moved < move.length.size()) {
      const auto moved =
          part(move.length.data() + move.length_moved, move.length.size() - move.length_moved);
      move.length_moved += moved;
      if (move.length_moved < move.length.size()) {
        return moved > 0;
      }
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, move.length.data(), sizeof bytes);
      sotto::check(bytes == move.bytes, "both ends of a message name one length");
    }
    const auto moved = part(move.at + move.moved, move.bytes - move.moved);
    move.moved += moved;
    return moved > 0;
  }
  /// On the stream: all messages of a group at once.
  void carry(Member& member, std::vector<Move> moves) {
    while (!member.aborted) {
      bool moved = false;
      for (Move& move : moves) {
        moved = advance(move, member) || moved;
      }
      std::erase_if(moves, [](const Move& move) {
        return move.length_moved == move.length.size() && move.moved == move.bytes;
      });
      if (moves.empty()) {
        return;
      }
      if (moved) {
        continue;
      }
      if (world_->tells_errors() && std::any_of(moves.begin(), moves.end(), [&](const Move& move) {
            return member.room->left[static_cast<std::size_t>(move.peer)].load();
          })) {
        member.broken = true;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  const std::shared_ptr<World> world_;
  const std::shared_ptr<FakeDevice> device_;
  std::atomic<int> ranks_{0};
  std::atomic<bool> failing_{false};
  std::atomic<bool> stalled_{false};
  std::atomic<int> groups_{0};
  std::atomic<int> destroyed_{0};
  std::atomic<std::size_t> bytes_sent_{0};
  bool grouped_ = false;
  Member* group_ = nullptr;
  internal::DeviceStream stream_ = nullptr;
  std::vector<Move> moves_;
};

}  // namespace sotto::test
