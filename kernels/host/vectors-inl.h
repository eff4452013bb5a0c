// What all vector kernels share: the register type, and loops that handle the last, partial
// register in the same code as the full ones.
//
// Included once per instruction set (see Highway's foreach_target.h), hence the toggled guard.
#if defined(SOTTO_KERNELS_HOST_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SOTTO_KERNELS_HOST_VECTORS_INL_H_
#undef SOTTO_KERNELS_HOST_VECTORS_INL_H_
#else
#define SOTTO_KERNELS_HOST_VECTORS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "../ops.h"

HWY_BEFORE_NAMESPACE();
namespace sotto::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sixteen lanes at most: wider registers would only lengthen the partial ones, and noise comes in
// runs of sixteen (base/philox.h).
using F32 = hn::CappedTag<float, 16>;
using U32 = hn::RebindToUnsigned<F32>;
using I32 = hn::RebindToSigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using U8 = hn::Rebind<uint8_t, F32>;
using VecF = hn::Vec<F32>;
using VecU = hn::Vec<U32>;

constexpr size_t kLanes = hn::MaxLanes(F32());
static_assert(kLanes >= 4, "the packing kernels need at least four lanes");
constexpr size_t kLineFloats = 16;  // of a cache line

/// Access to whole registers.
struct Whole {
  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* p) const {
    return hn::LoadU(d, p);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, hn::TFromD<D>* p) const {
    hn::StoreU(v, d, p);
  }
};

/// Access to the first `count` lanes only; the others read as zero and are not written.
struct Part {
  size_t count;

  template <class D>
  HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* p) const {
    HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())] = {};
    memcpy(lanes, p, count * sizeof(lanes[0]));
    return hn::Load(d, lanes);
  }
  template <class D>
  HWY_INLINE void store(hn::Vec<D> v, D d, hn::TFromD<D>* p) const {
    HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(D())];
    hn::Store(v, d, lanes);
    memcpy(p, lanes, count * sizeof(lanes[0]));
  }
};

/// Calls body(access, i) for every register's first element i of `count` elements.
template <class Body>
HWY_INLINE void for_each_register(size_t count, const Body& body) {
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    body(Whole(), i);
  }
  if (i < count) {
    body(Part{count - i}, i);
  }
}

/// Fetches what is wanted soon (../ops.h), a line at a time and evenly: a burst would fill the
/// processor's queue of pending loads, and stop it, and the memory would wait until the next.
class Fetcher {
 public:
  explicit Fetcher(const Soon& soon) {
    for (const float* from : soon.from) {
      add(reinterpret_cast<uintptr_t>(from), soon.count);
    }
  }
  /// Vectors are coded chunk by chunk: what follows the `count` floats at x. There may be no next
  /// chunk: the address is only a hint, never a pointer into x.
  Fetcher(const float* x, size_t count) {
    add(reinterpret_cast<uintptr_t>(x) + count * sizeof(float), count);
  }

  /// The next line of each: to be called once for every kLineFloats elements that are done, or a
  /// little more often.
  HWY_INLINE void line() {
    if (done_ < bytes_) {
      for (size_t s = 0; s < streams_; ++s) {
        // NOLINTNEXTLINE(performance-no-int-to-ptr)
        hwy::Prefetch(reinterpret_cast<const char*>(begin_[s] + done_));
      }
      done_ += kCacheLine;
    }
  }

 private:
  static constexpr size_t kLongest = 16384;  // 64 KiB: it and the next fit in a second-level cache
  static constexpr size_t kCacheLine = kLineFloats * sizeof(float);

  void add(uintptr_t begin, size_t count) {
    if (begin != 0 && count <= kLongest) {
      begin_[streams_++] = begin;
      bytes_ = count * sizeof(float);
    }
  }

  uintptr_t begin_[3] = {};
  size_t streams_ = 0;
  size_t bytes_ = 0;
  size_t done_ = 0;
};

}  // namespace sotto::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
