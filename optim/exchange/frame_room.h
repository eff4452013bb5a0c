// The frames of several mailboxes that are never open at the same time: each uses the longest that
// there is when it is made. The nodes of a simulation, which share such a room
// (AlgorithmSetup::frames), also share what vectors they can.
//
// A building block, not for users. One thread at a time. Memory of frames is allocated as mailboxes
// are made.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <sotto/base/check.h>
#include <sotto/optim/exchange/shared_models.h>
#include <sotto/optim/exchange/vector_pool.h>
#include <sotto/optim/local_node.h>

namespace sotto {

class FrameRoom {
 public:
  /// Which of a mailbox's frames.
  enum class Way { out, in };

  /// Memory for frame number `number` of a mailbox; another mailbox that asks for the same one gets
  /// the same memory, unless it needs more.
  std::shared_ptr<std::byte> frame(const LocalNode& node, Way way, std::size_t number,
                                   std::size_t bytes) {
    std::vector<Kept>& kept = way == Way::out ? out_ : in_;
    if (kept.size() <= number) {
      kept.resize(number + 1);
    }
    if (kept[number].bytes < bytes) {
      kept[number] = {.memory = node.frame_memory(bytes), .bytes = bytes};
      bytes_ += bytes;
    }
    return kept[number].memory;
  }
  /// Bytes of all frames that it has made, also those that a longer one took the place of: the
  /// mailbox that asked for them keeps them.
  std::size_t bytes() const { return bytes_; }

  /// A mailbox opens its exchange: no other one's is open.
  void open() {
    check(!open_, "mailboxes that share frames are open one after the other");
    open_ = true;
  }
  /// It has closed it.
  void close() { open_ = false; }

  /// Vectors that the nodes which share this room lend each other.
  VectorPool& vectors() { return vectors_; }
  /// Vectors that several of these nodes hold.
  SharedModels& models() { return models_; }

 private:
  struct Kept {
    std::shared_ptr<std::byte> memory;
    std::size_t bytes = 0;
  };

  VectorPool vectors_;
  SharedModels models_;
  std::vector<Kept> out_;
  std::vector<Kept> in_;
  std::size_t bytes_ = 0;
  bool open_ = false;
};

/// The pool of the nodes that share a room with this one; null: it shares none.
inline VectorPool* shared_vectors(const LocalNode& node) {
  return node.shared_frames() == nullptr ? nullptr : &node.shared_frames()->vectors();
}

/// The vectors that those nodes hold together; null: it shares none.
inline SharedModels* shared_models(const LocalNode& node) {
  return node.shared_frames() == nullptr ? nullptr : &node.shared_frames()->models();
}

}  // namespace sotto
