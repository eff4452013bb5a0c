// The two ends of a stream: the parcels that one site makes for another, numbered from 1, each
// applied once.
//
// The sender keeps a parcel until its receipt and sends it again whenever the two meet; the
// receiver knows by its number what comes twice. Both ends survive a restart because a parcel
// leaves, and a receipt leaves, only when what it tells of is durable.
//
// Building blocks of Site, not for users. One thread at a time; they own their parcels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/shared_bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/message.h>

namespace sotto::sites {

/// Bytes that several streams share, since neighbours get the same.
using Payload = std::shared_ptr<const std::vector<std::byte>>;

/// The sender's end: parcels that have no receipt yet.
class OutStream {
 public:
  /// A parcel under way.
  struct Item {
    Round round = 0;
    double mass = 0;
    Payload payload;
  };

  /// Number of the next parcel.
  Sequence next() const { return next_; }
  /// First parcel that can be sent again; next() if none can.
  Sequence oldest() const { return next_ - items_.size(); }
  /// Last parcel that is durable at the receiver.
  Sequence receipts() const { return receipts_; }
  /// Parcels without a receipt, from oldest() on.
  const std::deque<Item>& items() const { return items_; }
  /// Mass in them.
  double under_way() const;
  /// Mass in all parcels ever made.
  double given() const { return given_; }
  /// The receiver did not get all that others got: it is due a whole copy.
  bool behind() const { return behind_; }
  /// Notes that the receiver is due a whole copy.
  void fall_behind() { behind_ = true; }
  /// The receiver of all parcels up to `applied` asks for a whole copy. False where one is under
  /// way.
  bool ask_whole(Sequence applied) {
    const bool granted = !behind_ && applied >= whole_;
    behind_ = behind_ || granted;
    return granted;
  }

  /// Makes the next parcel; `whole` brings the receiver up to date. Returns its number.
  Sequence push(Item item, bool whole);
  /// All parcels up to `applied`, which lies in receipts() … next() − 1, are durable there.
  void receipt(Sequence applied);
  /// Gives up the parcels without a receipt; numbers go on. Returns their mass.
  double write_off();

  /// Appends the stream and its parcels.
  void save(ByteBuffer& out) const;
  /// Fault::malformed for what save cannot have written with at most `window` parcels of at most
  /// `max_payload` bytes.
  Status load(ByteReader& in, std::size_t window, std::size_t max_payload);

 private:
  Sequence next_ = 1;
  Sequence receipts_ = 0;
  Sequence whole_ = 0;  // number of the last whole copy
  double given_ = 0;
  bool behind_ = true;
  std::deque<Item> items_;
};

/// The receiver's end: what came, what is applied, and what of that is durable.
class InStream {
 public:
  /// A parcel that waits to be applied.
  struct Item {
    Sequence sequence = 0;
    Round round = 0;
    SharedBytes payload;
  };

  /// The result of a parcel's arrival.
  enum class Arrival : std::uint8_t {
    kept,
    repeated,   ///< the parcel came before, as its number shows
    gap,        ///< earlier parcels are missing
    old_round,  ///< the parcel's round does not follow the previous one's
    too_many,   ///< the sender has exceeded the window
  };

  /// Last parcel that is in the site's state; … in its durable state; … that came.
  Sequence applied() const { return applied_; }
  Sequence durable() const { return durable_; }
  Sequence received() const { return received_; }
  /// Mass in all parcels ever applied.
  double taken() const { return taken_; }
  /// Come, and not yet applied.
  const std::deque<Item>& pending() const { return pending_; }

  /// A hello announced parcels from `oldest` to `next` − 1. What is pending before `oldest` was
  /// written off by the sender, and is lost; the stream goes on there.
  void announce(Sequence oldest, Sequence next);
  /// Ends the wait for announced parcels.
  void announce_no_more() { announced_ = 0; }
  /// Announced parcels that have not come.
  bool awaits() const;

  /// A parcel has come, in `message`, of which its payload is a part. Only what is `kept` changes
  /// the stream; at most `window` wait.
  Arrival arrive(const Parcel& parcel, const SharedBytes& message, std::size_t window);
  /// The first pending parcel has been applied, and held `mass`.
  void apply_first(double mass);
  /// Drops pending parcels; the sender sends them again.
  void drop_pending();
  /// The state that is written next has the applied parcels, and nothing leaves before: they count
  /// as durable.
  void make_durable() { durable_ = applied_; }

  /// Appends how far the stream has come.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote.
  Status load(ByteReader& in);

 private:
  Sequence applied_ = 0;
  Sequence durable_ = 0;
  Sequence received_ = 0;
  Sequence resumes_ = 1;    // first parcel that the last hello announced
  Sequence announced_ = 1;  // next parcel in the last hello
  Round last_round_ = 0;    // round of the latest parcel in this process
  double taken_ = 0;
  std::deque<Item> pending_;
};

}  // namespace sotto::sites
