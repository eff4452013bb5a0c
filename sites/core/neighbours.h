// The peers of a site's list, in the order of the list, and those that have left it: a peer that
// comes back to the list goes on with the streams that it had.
//
// A building block of Site, not for users. One thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <sotto/base/bytes.h>
#include <sotto/base/check.h>
#include <sotto/base/status.h>
#include <sotto/sites/core/neighbour.h>
#include <sotto/sites/core/site_setup.h>

namespace sotto::sites {

class Neighbours {
 public:
  /// Number of former peers that are remembered: the latest ones.
  static constexpr std::size_t kMostFormer = 256;

  // The list, as a range.

  std::size_t size() const { return listed_.size(); }
  /// The peer at this place of the list.
  Neighbour& operator[](std::size_t peer) {
    check(peer < listed_.size(), "a peer is one of the list");
    return listed_[peer];
  }
  /// The peer at this place of the list.
  const Neighbour& operator[](std::size_t peer) const { return listed_[peer]; }
  auto begin() { return listed_.begin(); }
  auto end() { return listed_.end(); }
  auto begin() const { return listed_.begin(); }
  auto end() const { return listed_.end(); }

  // A new list.

  /// Places of the peers whose edge is another one in that list.
  std::vector<std::size_t> changed_by(const std::vector<SitePeer>& list) const;
  /// Places of the peers that are not in that list.
  std::vector<std::size_t> missing_from(const std::vector<SitePeer>& list) const;
  /// How a new list stands to the one before; kNobody for a place that there is not.
  struct Moves {
    std::vector<std::size_t> from;  ///< by new place: the old one
    std::vector<std::size_t> to;    ///< by old place: the new one
  };
  /// The list is this one from now on. Peers that are in both keep what is remembered of them,
  /// those that leave are remembered, and one that was in an earlier list goes on where it stood.
  Moves update(const std::vector<SitePeer>& list);

  // What holds of all.

  /// Number of peers that this site sends to, observers apart.
  std::size_t tells() const;
  /// Whether two or more peers have said which round it is, or no absent peer could still say.
  bool has_second_opinion() const;
  /// The rounds of peers that are heard and have begun, but for one.
  std::vector<Round> rounds_but_of(std::optional<std::size_t> peer) const;
  /// As Site::set_draining.
  void set_draining(const std::vector<DrainingPeer>& peers);
  /// As Site::quiet.
  bool quiet() const;
  /// The site has a new incarnation: nothing has gone between it and any peer, former ones too.
  void begin_anew();

  /// Appends the former peers, for load_former.
  void save_former(ByteBuffer& out) const;
  /// In place of all that are there: no peer is listed. For load_next and load_former.
  void clear();
  /// Takes back the next peer of a saved list: its name, and what Neighbour::save wrote. A fault
  /// for a name that is none, or is there already.
  Status load_next(ByteReader& in, std::size_t window, std::size_t max_payload);
  /// Takes back what save_former wrote.
  Status load_former(ByteReader& in, std::size_t window, std::size_t max_payload);

 private:
  static std::size_t place_of(const std::vector<Neighbour>& peers, std::string_view name);
  Status load_into(std::vector<Neighbour>& peers, ByteReader& in, std::size_t window,
                   std::size_t max_payload);

  std::vector<Neighbour> listed_;
  std::vector<Neighbour> former_;
};

}  // namespace sotto::sites
