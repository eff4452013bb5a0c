// Judges a hello: whether this site remembers its sender, and whether the two streams between them
// fit together (the table in docs/sites.md).
//
// Pure functions and plain values; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/message.h>
#include <sotto/sites/core/parcel_stream.h>

namespace sotto::sites {

/// Incarnations of a site that others have replaced, oldest first.
class Past {
 public:
  /// An incarnation that was, and the last that was known of it.
  struct Entry {
    Incarnation incarnation = 0;
    std::uint32_t life = 0;
  };
  /// Older ones are forgotten.
  static constexpr std::size_t kRemembered = 8;

  /// Remembers it; of too many, the oldest is forgotten.
  void add(Entry entry);
  /// Null when it is not remembered.
  const Entry* find(Incarnation incarnation) const;

  /// Appends all entries.
  void save(ByteBuffer& out) const;
  /// Takes back what save wrote.
  Status load(ByteReader& in);

 private:
  std::vector<Entry> entries_;
};

/// Another site, as this one remembers it.
struct Acquaintance {
  Incarnation incarnation = 0;  ///< 0: never met
  std::uint32_t life = 0;
  Round round = 0;  ///< the site's latest round that this one has heard of
  Past past;

  /// This incarnation was seen to be older than the present one.
  void note_older(Past::Entry seen) {
    if (seen.incarnation != incarnation && past.find(seen.incarnation) == nullptr) {
      past.add(seen);
    }
  }
};

/// This site in the present.
struct Self {
  Incarnation incarnation;
  const Past& past;
};

/// The decision on a hello.
enum class Verdict : std::uint8_t {
  agreed,         ///< everything fits
  newcomer,       ///< a new incarnation: the streams start anew
  older_process,  ///< a newer process, or incarnation, of the sender is known
  stale,          ///< the sender's state is older than one that is known
  self_stale,     ///< this site's state is older than one that the sender knows
  undecided,      ///< one of the two is stale, and only the sender can tell which
};

/// `out` and `in` are the streams with the incarnation that is remembered.
Verdict judge(const Hello& hello, const Acquaintance& known, const Self& self, const OutStream& out,
              const InStream& in);

}  // namespace sotto::sites
