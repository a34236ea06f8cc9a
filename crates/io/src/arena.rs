//! Aligned buffers in huge pages.
//!
//! One anonymous mapping is cut into equal [`IoBuffer`]s. Arenas of 2 MiB and more ask for huge
//! pages. A 512K request then has one segment instead of 128; a virtio disk with 254 segments
//! splits requests above 1016K of small pages. Registering such an arena with a ring pins a handful
//! of pages. Buffers keep the mapping alive; it is unmapped when the last one is dropped.

use crate::IoError;
use plumb_events::now;
use plumb_units::Nanos;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::Arc;

const HUGE_PAGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// A mapping from which equal buffers are cut.
#[derive(Debug, Clone)]
pub struct Arena(Arc<Mapping>);

/// Aligned to a cache line of its own, apart from the counts of its `Arc`. Every block access reads
/// it, and every pin and unpin writes those counts.
#[derive(Debug)]
#[repr(align(64))]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
    /// The part that buffers are cut from: its start in the mapping and its length, in bytes.
    used: (usize, usize),
}

// SAFETY: the mapping is plain memory, and all access goes one of three ways. IoBuffers never
// overlap. A HugeVec owns its mapping. The words of a BufferPool separate readers of a piece from
// the owner of its IoBuffer.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}
// SAFETY: as above. A shared Mapping exposes its bytes only by Arena::bytes,
// for which the caller answers.
#[allow(unsafe_code)]
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `count` times `each` bytes, from a huge page boundary on if they fill a huge page.
    fn new(each: usize, count: usize) -> Result<Mapping, IoError> {
        let beyond = || IoError::Memory { bytes: usize::MAX, source: Errno::NOMEM.into() };
        let wanted = each.checked_mul(count).ok_or_else(beyond)?;
        // One huge page more than needed leaves room to start at a boundary.
        let huge = wanted >= HUGE_PAGE;
        let (unit, spare) = if huge { (HUGE_PAGE, HUGE_PAGE) } else { (PAGE, 0) };
        let length = wanted.checked_next_multiple_of(unit).and_then(|whole| whole.checked_add(spare));
        let length = length.ok_or_else(beyond)?;
        // SAFETY: a new private anonymous mapping aliases nothing.
        #[allow(unsafe_code)]
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }
        .map_err(|source| IoError::Memory { bytes: length, source: source.into() })?;
        let start = NonNull::new(start.cast::<u8>()).expect("mmap never maps address zero");
        let first = if huge { start.as_ptr().align_offset(HUGE_PAGE) } else { 0 };
        if huge {
            // Only whole huge pages: rounding up would count memory that no buffer uses.
            advise_huge(start.as_ptr().wrapping_add(first), wanted / HUGE_PAGE * HUGE_PAGE);
        }
        Ok(Mapping { start, length, used: (first, wanted) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and length are those of mmap, and the last buffer is gone.
        #[allow(unsafe_code)]
        // A failed unmap leaves memory mapped; drop has no caller to report it to.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

impl Arena {
    /// Maps `count` buffers of `bytes` each, zeroed, without gaps. The first is aligned
    /// to 4096 bytes, and each to the largest power of two up to 4096 that divides
    /// `bytes`. That is enough for direct I/O of whole buffers: memory need not be
    /// aligned better than lengths ([`plumb_host::device::DirectIoSupport`]).
    ///
    /// # Errors
    /// When the kernel has no memory, or the address space has no room for it.
    ///
    /// # Panics
    /// When `bytes` is not a positive multiple of 512 or `count` is zero.
    pub fn buffers(bytes: usize, count: usize) -> Result<(Arena, Vec<IoBuffer>), IoError> {
        let arena = Arena::new(bytes, count)?;
        // SAFETY: each piece is cut once, and no other code has the arena yet.
        #[allow(unsafe_code)]
        let buffers = (0..count).map(|index| unsafe { arena.cut(index, bytes) }).collect();
        Ok((arena, buffers))
    }

    /// Maps the memory of `count` pieces of `bytes` each, without cutting a buffer.
    pub(crate) fn new(bytes: usize, count: usize) -> Result<Arena, IoError> {
        assert!(
            bytes > 0 && bytes.is_multiple_of(512),
            "a buffer of {bytes} bytes cannot be used for direct I/O"
        );
        assert!(count > 0);
        Ok(Arena(Arc::new(Mapping::new(bytes, count)?)))
    }

    /// Cuts piece `index` of the pieces of `bytes` bytes.
    ///
    /// # Safety
    /// While the buffer lives, no other buffer of these bytes exists and no reader borrows them.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn cut(&self, index: usize, bytes: usize) -> IoBuffer {
        IoBuffer { start: self.piece(index, bytes), length: bytes, mapping: Arc::clone(&self.0) }
    }

    /// True if the buffer is piece `index` of this arena.
    pub(crate) fn is_cut(&self, index: usize, bytes: usize, buffer: &IoBuffer) -> bool {
        self.owns(buffer) && buffer.start == self.piece(index, bytes) && buffer.length == bytes
    }

    /// Returns the bytes of piece `index`.
    ///
    /// # Safety
    /// While the bytes are borrowed, no code changes them or holds their buffer.
    #[allow(unsafe_code)]
    #[inline]
    pub(crate) unsafe fn bytes(&self, index: usize, bytes: usize) -> &[u8] {
        // SAFETY: the piece is mapped and initialised (zero pages); the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts(self.piece(index, bytes).as_ptr(), bytes) }
    }

    #[inline]
    fn piece(&self, index: usize, bytes: usize) -> NonNull<u8> {
        let (start, length) = self.span();
        assert!((index + 1) * bytes <= length, "a piece lies inside the mapping");
        NonNull::new(start.wrapping_add(index * bytes)).expect("inside the mapping")
    }

    /// Start and length of the part in use, for registration with a ring.
    pub(crate) fn span(&self) -> (*mut u8, usize) {
        (self.0.start.as_ptr().wrapping_add(self.0.used.0), self.0.used.1)
    }

    /// Returns the address range of the buffers, with which receipts find the mapping in /proc.
    pub fn addresses(&self) -> Range<usize> {
        let (start, length) = self.span();
        start.addr()..start.addr() + length
    }

    /// Prefetches the cache line at byte `offset` from the first buffer on, ahead of its use. An
    /// offset past the last buffer is ignored.
    #[inline]
    pub fn prefetch(&self, offset: usize) {
        let (start, length) = self.span();
        if offset < length {
            prefetch_line(start.wrapping_add(offset));
        }
    }

    pub(crate) fn owns(&self, buffer: &IoBuffer) -> bool {
        Arc::ptr_eq(&self.0, &buffer.mapping)
    }
}

/// A piece of an arena, owned by one party at a time.
#[derive(Debug)]
pub struct IoBuffer {
    start: NonNull<u8>,
    length: usize,
    mapping: Arc<Mapping>,
}

// SAFETY: while a buffer lives, it is the only way to its bytes, as with Box<[u8]>.
#[allow(unsafe_code)]
unsafe impl Send for IoBuffer {}
// SAFETY: shared access is read-only.
#[allow(unsafe_code)]
unsafe impl Sync for IoBuffer {}

impl Deref for IoBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are mapped, initialised (zero pages) and owned by this buffer.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.length)
        }
    }
}

impl DerefMut for IoBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in deref, and the borrow is exclusive.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length)
        }
    }
}

/// A vector of fixed capacity in a mapping of its own, with huge pages. A sort area of 32 MiB costs
/// 16 page faults instead of 8,192, and random accesses few TLB misses. All of it returns to the
/// system on drop; the allocator would keep it, which would count as memory in use.
#[derive(Debug)]
pub struct HugeVec<T: Copy> {
    mapping: Option<Mapping>,
    start: NonNull<T>,
    length: usize,
    capacity: usize,
    /// Bytes from the start that [`supply`](HugeVec::supply) has populated.
    supplied: usize,
}

// SAFETY: it owns its elements as Vec<T> does.
#[allow(unsafe_code)]
unsafe impl<T: Copy + Send> Send for HugeVec<T> {}
// SAFETY: shared access is read-only.
#[allow(unsafe_code)]
unsafe impl<T: Copy + Sync> Sync for HugeVec<T> {}

impl<T: Copy> HugeVec<T> {
    /// Maps an empty vector with room for `capacity` elements.
    ///
    /// # Errors
    /// When the kernel has no memory, or the address space has no room for it.
    pub fn with_capacity(capacity: usize) -> Result<HugeVec<T>, IoError> {
        const { assert!(align_of::<T>() <= PAGE) };
        if capacity == 0 || size_of::<T>() == 0 {
            return Ok(HugeVec::empty());
        }
        let mapping = Mapping::new(size_of::<T>(), capacity)?;
        let start = mapping.start.as_ptr().wrapping_add(mapping.used.0).cast::<T>();
        let start = NonNull::new(start).expect("inside the mapping");
        Ok(HugeVec { mapping: Some(mapping), start, length: 0, capacity, supplied: 0 })
    }

    /// Returns a vector of capacity zero, without a mapping.
    pub const fn empty() -> HugeVec<T> {
        HugeVec { mapping: None, start: NonNull::dangling(), length: 0, capacity: 0, supplied: 0 }
    }

    /// Populates memory for `more` further elements, a huge page at a time. Returns the time taken:
    /// zero where the memory is populated already. Otherwise the first touch populates each page,
    /// at the same cost but unmeasured.
    pub fn supply(&mut self, more: usize) -> Nanos {
        let needed = (self.length + more).min(self.capacity) * size_of::<T>();
        if needed <= self.supplied {
            return Nanos(0);
        }
        let until = needed.next_multiple_of(HUGE_PAGE).min(self.mapped_bytes().next_multiple_of(PAGE));
        let begin = now();
        populate(self.start.as_ptr().cast::<u8>().wrapping_add(self.supplied), until - self.supplied);
        self.supplied = until;
        now().saturating_sub(begin)
    }

    /// Appends one element in place.
    ///
    /// # Panics
    /// When the vector is full.
    #[inline]
    pub fn push(&mut self, element: T) {
        self.extend_from_slice(&[element]);
    }

    /// Appends elements by one copy.
    ///
    /// # Panics
    /// When they exceed the free capacity.
    #[inline]
    pub fn extend_from_slice(&mut self, elements: &[T]) {
        assert!(elements.len() <= self.capacity - self.length, "a vector of fixed capacity is full");
        // SAFETY: the place after the last element is inside the mapping (asserted), and `&mut
        // self` excludes other references into it.
        #[allow(unsafe_code)]
        unsafe {
            let end = self.start.as_ptr().add(self.length);
            std::ptr::copy_nonoverlapping(elements.as_ptr(), end, elements.len());
        }
        self.length += elements.len();
    }

    /// Returns the number of elements that fit in all.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of elements that still fit.
    pub fn room(&self) -> usize {
        self.capacity - self.length
    }

    /// Removes all elements; the memory stays populated.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Returns the bytes mapped for elements.
    pub fn mapped_bytes(&self) -> usize {
        self.mapping.as_ref().map_or(0, |mapping| mapping.used.1)
    }
}

impl HugeVec<u8> {
    /// Returns the bytes after the last element, up to the capacity: zeros at first, later any
    /// bytes written before. [`grow`](HugeVec::grow) makes them elements.
    #[inline]
    #[must_use]
    pub fn room_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping holds `capacity` bytes, initialised (zero pages), and the
        // borrow is exclusive.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr().add(self.length), self.capacity - self.length)
        }
    }

    /// Adds the first `bytes` bytes of the room to the elements, with the content they have.
    ///
    /// # Panics
    /// When the room is smaller.
    #[inline]
    pub fn grow(&mut self, bytes: usize) {
        assert!(bytes <= self.room(), "a vector of fixed capacity is full");
        self.length += bytes;
    }
}

/// Types of which every bit pattern is a value and that have no padding.
pub trait Plain: Copy + private::Sealed {}

mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

impl Plain for u64 {}
impl Plain for u128 {}

impl<T: Plain> HugeVec<T> {
    /// Returns the elements' bytes in memory, in the byte order of the machine.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the elements are initialised and have no padding.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr().cast(), self.length * size_of::<T>())
        }
    }
}

impl<T: Copy> Deref for HugeVec<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `length` elements were written by extend_from_slice, or are bytes that
        // grow took in: zero, or written through room_mut.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts(self.start.as_ptr(), self.length)
        }
    }
}

impl<T: Copy> DerefMut for HugeVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in deref, and the borrow is exclusive.
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length)
        }
    }
}

/// Asks for huge pages; a kernel without them serves small ones: slower, but no error.
fn advise_huge(start: *mut u8, length: usize) {
    // SAFETY: the range is mapped by the caller; the advice changes no byte.
    #[allow(unsafe_code)]
    let _ = unsafe { madvise(start.cast(), length, Advice::LinuxHugepage) };
}

/// Asks for huge pages behind memory that will be filled at random places, to save TLB misses. Call
/// it before the first write.
pub fn ask_huge_pages<T>(room: &mut [MaybeUninit<T>]) {
    let Range { start, end } = room.as_mut_ptr_range();
    let (start, end) = (start.cast::<u8>(), end.cast::<u8>());
    let first = start.wrapping_add(start.align_offset(HUGE_PAGE));
    if first < end {
        advise_huge(first, (end.addr() - first.addr()) / HUGE_PAGE * HUGE_PAGE);
    }
}

/// Populates the pages of a range; a kernel before 5.14 refuses, and the first touch supplies them.
fn populate(start: *mut u8, length: usize) {
    // SAFETY: the range lies inside a mapping of the caller's; no byte changes.
    #[allow(unsafe_code)]
    let _ = unsafe { madvise(start.cast(), length, Advice::LinuxPopulateWrite) };
}

/// Prefetches the cache line of a byte, ahead of its use; a place past the end is harmless. Without
/// it two loops wait for memory: a merge of more runs than the processor's prefetcher follows, and
/// a gather of records in sorted order.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    prefetch_line(bytes.as_ptr().wrapping_add(at));
}

/// Cache lines to prefetch at the start of a page: enough to start the processor's own prefetcher,
/// which stops at the end of a page.
const PAGE_LINES: usize = 8;
/// Largest buffer to prefetch, in bytes: a block is read at once, a longer buffer piece by piece.
const ARRIVED_MOST: usize = 32 << 10;

/// Prefetches the start of each page of a block that a device has just written to memory. No more
/// than that: a core has about sixteen memory requests in flight and stalls at the next one. With a
/// system call in between, the checksum of 8K takes 0.6 us instead of 0.95.
#[inline]
pub(crate) fn prefetch_arrived(bytes: &[u8]) {
    if bytes.len() <= ARRIVED_MOST {
        for page in (0..bytes.len()).step_by(PAGE) {
            (0..PAGE_LINES).for_each(|line| prefetch(bytes, page + line * 64));
        }
    }
}

#[inline]
fn prefetch_line(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and never faults, whatever the address.
        #[allow(unsafe_code)]
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(place.cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
