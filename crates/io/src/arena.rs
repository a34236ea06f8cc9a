//! Aligned buffers in huge pages.
//!
//! One anonymous mapping is cut into equal [`IoBuffer`]s. Arenas of 2 MiB and
//! more ask for huge pages: a 512K request then has one segment instead of 128
//! (a virtio disk with 254 segments splits anything above 1016K of small pages),
//! and registering it with a ring pins a handful of pages. Buffers keep the
//! mapping alive; it is unmapped when the last one is dropped.

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

/// A mapping that pieces are cut from.
#[derive(Debug, Clone)]
pub struct Arena(Arc<Mapping>);

/// In a cache line of its own, apart from the counts of its `Arc`: every look at a block reads it, and every block that is read or changed counts.
#[derive(Debug)]
#[repr(align(64))]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
    /// The part that buffers are cut from: where it begins, and its length.
    used: (usize, usize),
}

// SAFETY: the mapping is plain memory; all access goes through IoBuffers, which never overlap, through the one HugeVec that
// owns it, or through a BufferPool, whose words keep those who look at a piece apart from who has its IoBuffer.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}
// SAFETY: as above; a shared Mapping gives no access to its bytes but by Arena::bytes, whose caller answers for it.
#[allow(unsafe_code)]
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `count` times `each` bytes, from a huge page boundary on if they are worth one.
    fn new(each: usize, count: usize) -> Result<Mapping, IoError> {
        let beyond = || IoError::Memory { bytes: usize::MAX, source: Errno::NOMEM.into() };
        let wanted = each.checked_mul(count).ok_or_else(beyond)?;
        // Mapping a huge page more than wanted allows to start at a boundary.
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
            // Only whole huge pages: rounding up would count memory that nobody asked for.
            advise_huge(start.as_ptr().wrapping_add(first), wanted / HUGE_PAGE * HUGE_PAGE);
        }
        Ok(Mapping { start, length, used: (first, wanted) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: start and length are those of mmap, and the last buffer is gone.
        #[allow(unsafe_code)]
        // A failed unmap leaves memory mapped; there is nobody to tell.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

impl Arena {
    /// Maps `count` buffers of `bytes` each, zeroed, without a gap: they take what they are. The first is aligned to
    /// 4096 bytes, and each to the largest power of two up to that of which `bytes` is a multiple. That is enough
    /// for direct I/O of whole buffers: memory need not be aligned better than lengths
    /// ([`plumb_host::device::DirectIoSupport`]).
    ///
    /// # Errors
    /// When the kernel has no memory, or an address space has no room for so much.
    ///
    /// # Panics
    /// When `bytes` is not a positive multiple of 512 or `count` is zero.
    pub fn buffers(bytes: usize, count: usize) -> Result<(Arena, Vec<IoBuffer>), IoError> {
        let arena = Arena::new(bytes, count)?;
        // SAFETY: each piece once, and nobody else has the arena yet.
        #[allow(unsafe_code)]
        let buffers = (0..count).map(|index| unsafe { arena.cut(index, bytes) }).collect();
        Ok((arena, buffers))
    }

    /// The mapping, from which nothing is cut yet.
    pub(crate) fn new(bytes: usize, count: usize) -> Result<Arena, IoError> {
        assert!(
            bytes > 0 && bytes.is_multiple_of(512),
            "a buffer of {bytes} bytes cannot be used for direct I/O"
        );
        assert!(count > 0);
        Ok(Arena(Arc::new(Mapping::new(bytes, count)?)))
    }

    /// Piece `index` of those of so many bytes.
    ///
    /// # Safety
    /// As long as the buffer lives there is no other of these bytes, and nobody looks at them.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn cut(&self, index: usize, bytes: usize) -> IoBuffer {
        IoBuffer { start: self.piece(index, bytes), length: bytes, mapping: Arc::clone(&self.0) }
    }

    /// Whether the buffer is that piece.
    pub(crate) fn is_cut(&self, index: usize, bytes: usize, buffer: &IoBuffer) -> bool {
        self.owns(buffer) && buffer.start == self.piece(index, bytes) && buffer.length == bytes
    }

    /// What is in that piece.
    ///
    /// # Safety
    /// Nobody changes it, or has a buffer of it, as long as the bytes are borrowed.
    #[allow(unsafe_code)]
    #[inline]
    pub(crate) unsafe fn bytes(&self, index: usize, bytes: usize) -> &[u8] {
        // SAFETY: the piece is mapped and initialised (zero pages), and the caller sees to the rest.
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

    /// The addresses of its buffers, to ask the kernel what is mapped there.
    #[must_use]
    pub fn addresses(&self) -> Range<usize> {
        let (start, length) = self.span();
        start.addr()..start.addr() + length
    }

    /// Asks for the cache line at so many bytes from the first buffer on, so that it is there when it is looked at a little later; behind the
    /// last buffer it asks in vain.
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

// SAFETY: a buffer is the only way to its bytes as long as it lives, as Box<[u8]> is.
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

/// A vector of fixed capacity in a mapping of its own, with huge pages: a sort
/// area of 32 MiB costs 16 page faults instead of 8,192, its random accesses few
/// TLB misses, and all of it goes back to the system when it is dropped (the
/// allocator keeps what it once gave out, which would count as memory in use).
#[derive(Debug)]
pub struct HugeVec<T: Copy> {
    mapping: Option<Mapping>,
    start: NonNull<T>,
    length: usize,
    capacity: usize,
    /// Bytes from the start for which the system has supplied memory, as far as is known.
    supplied: usize,
}

// SAFETY: it owns its elements as Vec<T> does.
#[allow(unsafe_code)]
unsafe impl<T: Copy + Send> Send for HugeVec<T> {}
// SAFETY: shared access is read-only.
#[allow(unsafe_code)]
unsafe impl<T: Copy + Sync> Sync for HugeVec<T> {}

impl<T: Copy> HugeVec<T> {
    /// An empty vector with room for `capacity` elements.
    ///
    /// # Errors
    /// When the kernel has no memory, or an address space has no room for so much.
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

    /// A vector without room and without memory.
    #[must_use]
    pub const fn empty() -> HugeVec<T> {
        HugeVec { mapping: None, start: NonNull::dangling(), length: 0, capacity: 0, supplied: 0 }
    }

    /// Has the system supply memory for so many more elements, a huge page at a time,
    /// and gives back how long that took; nothing where it has. Without it memory
    /// is supplied as it is touched, at the same cost, and nobody knows how much.
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

    /// Appends an element.
    ///
    /// # Panics
    /// When the capacity is used up.
    #[inline]
    pub fn push(&mut self, element: T) {
        self.extend_from_slice(&[element]);
    }

    /// Appends elements.
    ///
    /// # Panics
    /// When the capacity does not hold them.
    #[inline]
    pub fn extend_from_slice(&mut self, elements: &[T]) {
        assert!(elements.len() <= self.capacity - self.length, "a vector of fixed capacity is full");
        // SAFETY: the place behind the last element is inside the mapping (asserted)
        // and nobody else has a reference into it.
        #[allow(unsafe_code)]
        unsafe {
            let end = self.start.as_ptr().add(self.length);
            std::ptr::copy_nonoverlapping(elements.as_ptr(), end, elements.len());
        }
        self.length += elements.len();
    }

    /// Elements that fit in all.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Elements that still fit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.capacity - self.length
    }

    /// Forgets all elements; the memory stays.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// Bytes mapped for it.
    #[must_use]
    pub fn mapped_bytes(&self) -> usize {
        self.mapping.as_ref().map_or(0, |mapping| mapping.used.1)
    }
}

impl HugeVec<u8> {
    /// The bytes behind the last one, as many as there is room for: whatever was
    /// there before, zeros at first. What [`grow`](HugeVec::grow) takes in counts.
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

    /// Takes in so many bytes of the room as they are.
    ///
    /// # Panics
    /// When there is less room.
    #[inline]
    pub fn grow(&mut self, bytes: usize) {
        assert!(bytes <= self.room(), "a vector of fixed capacity is full");
        self.length += bytes;
    }
}

/// Numbers: every pattern of bits is a value, and there is no padding.
pub trait Plain: Copy + private::Sealed {}

mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for u128 {}
}

impl Plain for u64 {}
impl Plain for u128 {}

impl<T: Plain> HugeVec<T> {
    /// The elements as they lie in memory, in the byte order of the machine.
    #[inline]
    #[must_use]
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
        // SAFETY: the first `length` elements were written by extend_from_slice, or are bytes, zero or
        // written through room_mut, that grow took in.
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

/// Asks for huge pages; a kernel without them serves small ones, which is slower and no error.
fn advise_huge(start: *mut u8, length: usize) {
    // SAFETY: the range is mapped by the caller; the advice changes no byte.
    #[allow(unsafe_code)]
    let _ = unsafe { madvise(start.cast(), length, Advice::LinuxHugepage) };
}

/// Has huge pages behind what is going to be filled at random places: fewer translations are missed. To be called before it is filled.
pub fn ask_huge_pages<T>(room: &mut [MaybeUninit<T>]) {
    let Range { start, end } = room.as_mut_ptr_range();
    let (start, end) = (start.cast::<u8>(), end.cast::<u8>());
    let first = start.wrapping_add(start.align_offset(HUGE_PAGE));
    if first < end {
        advise_huge(first, (end.addr() - first.addr()) / HUGE_PAGE * HUGE_PAGE);
    }
}

/// Asks for memory behind addresses; a kernel before 5.14 refuses and supplies it as it is touched.
fn populate(start: *mut u8, length: usize) {
    // SAFETY: the range lies inside a mapping of the caller's; no byte changes.
    #[allow(unsafe_code)]
    let _ = unsafe { madvise(start.cast(), length, Advice::LinuxPopulateWrite) };
}

/// Asks for the cache line of a byte, so that it is there when it is looked at a
/// little later; a place behind the end is asked for in vain. A merge of more runs
/// than the processor follows streams by itself, and a gather of records in sorted
/// order, wait for memory otherwise.
#[inline]
pub fn prefetch(bytes: &[u8], at: usize) {
    prefetch_line(bytes.as_ptr().wrapping_add(at));
}

/// Cache lines at the beginning of a page that set the processor's own reading ahead going, which stops at its end.
const PAGE_LINES: usize = 8;
/// Most bytes whose pages are asked for: a block is looked at at once, and a longer read piece by piece.
const ARRIVED_MOST: usize = 32 << 10;

/// Asks for the beginning of each page of a block that a device has just put into memory, before something else is done; no more of it, because
/// the processor has some sixteen requests for memory on their way at most and stands at the next one. With a system call in between, the checksum of 8K
/// takes 0.6 us instead of 0.95.
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
